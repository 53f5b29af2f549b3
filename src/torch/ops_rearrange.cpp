// src/torch/ops_rearrange.cpp: operators that only move elements, by way of views and selections.
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"

namespace graft::binding {

at::Tensor GRAFT_OPERATOR(flip)(const at::Tensor& self, at::IntArrayRef dims) {
  const auto flipped = at::dim_list_to_bitset(dims, self.dim());
  at::Tensor result = self.clone();
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    if (!flipped[dim] || self.size(dim) < 2) continue;
    const auto positions = at::arange(self.size(dim) - 1, -1, -1, self.options().dtype(at::kLong));
    result = result.index_select(dim, positions);
  }
  return result;
}

at::Tensor GRAFT_OPERATOR(roll)(const at::Tensor& self, at::IntArrayRef shifts,
                                at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    return GRAFT_OPERATOR(roll)(self.contiguous().view(-1), shifts, {0}).view(self.sizes());
  }
  TORCH_CHECK(shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  at::Tensor result = self.clone();
  if (self.numel() == 0) return result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = self.size(dims[i]);
    const int64_t first = ((-shifts[i]) % size + size) % size;
    if (first == 0) continue;
    result = at::cat(
        {result.narrow(dims[i], first, size - first), result.narrow(dims[i], 0, first)}, dims[i]);
  }
  return result;
}

at::Tensor GRAFT_OPERATOR(trace)(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

}  // namespace graft::binding
