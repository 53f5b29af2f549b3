// src/torch/ops_sum.cpp: the sum, which reads small dtypes as they are instead of a widened copy.
#include <ATen/native/ReduceOpsUtils.h>

#include "kernels/reduce.h"
#include "operators.h"
#include "torch/guarded.h"
#include "torch/tensor_iterator.h"

namespace graft::binding {
namespace {

// Whether adding the elements of one dtype into another is what widening them first would give.
bool adds_alike(at::ScalarType from, at::ScalarType to) {
  if (at::isIntegralType(from, true)) return to == at::kLong;
  return (from == at::kHalf || from == at::kBFloat16) && to == at::kFloat;
}

}  // namespace

void GRAFT_STRUCTURED(sum_IntList_out)(const at::Tensor& self, at::OptionalIntArrayRef dim,
                                       bool keepdim, std::optional<at::ScalarType>,
                                       const at::Tensor& result) {
  const at::ScalarType to = result.scalar_type(), from = self.scalar_type();
  at::Tensor out = result;
  at::TensorIterator iterator = at::native::make_reduction("sum", out, self, dim, keepdim,
                                                           adds_alike(from, to) ? from : to, to);
  if (iterator.numel() == 0) {
    out.zero_();
  } else {
    reduce(stream_of(iterator), Reduction::kSum, operand_view(iterator, 0),
           operand_view(iterator, 1));
  }
}

}  // namespace graft::binding
