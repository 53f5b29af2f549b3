// src/torch/ops/compare.cpp: questions about whole tensors.
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

bool GRAFT_OPERATOR(equal)(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (!self.is_same_size(other)) return false;
  if (self.numel() == 0) return true;
  const at::ScalarType type = at::result_type(self, other);
  return at::eq(self.to(type), other.to(type)).all().item<bool>();
}

at::Tensor GRAFT_OPERATOR(count_nonzero_dim_IntList)(const at::Tensor& self, at::IntArrayRef dim) {
  return at::ne(self, 0).sum(dim);
}

}  // namespace graft::binding
