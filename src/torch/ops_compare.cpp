// src/torch/ops_compare.cpp: questions about whole tensors.
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>

#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"

namespace graft::binding {

bool GRAFT_OPERATOR(equal)(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  TORCH_CHECK(self.dtype() == other.dtype(),
              "Expected all tensors to have the same dtype, but got ", self.dtype(), " and ",
              other.dtype());
  if (!self.is_same_size(other)) return false;
  return self.numel() == 0 || at::eq(self, other).all().item<bool>();
}

at::Tensor GRAFT_OPERATOR(count_nonzero_dim_IntList)(const at::Tensor& self, at::IntArrayRef dim) {
  return at::ne(self, 0).sum(dim);
}

}  // namespace graft::binding
