// src/torch/ops/sum.cpp: the sum, which reads small dtypes as they are instead of a widened copy.

#include "kernels/reduce/reduce.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/version/ops/reduction.h"

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
  at::TensorIterator iterator =
      at::meta::make_reduction(self, result, dim, keepdim, adds_alike(from, to) ? from : to);
  if (iterator.numel() == 0) {
    result.zero_();
  } else {
    reduce(stream_of(iterator), Reduction::kSum, operand_view(iterator, 0),
           operand_view(iterator, 1));
  }
}

// The sum of complex numbers is left to the CPU, which refuses it, of no numbers too.
at::Tensor GRAFT_OPERATOR(nansum)(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                                  std::optional<at::ScalarType> dtype) {
  require(!self.is_complex());
  return native::nansum(self, dim, keepdim, dtype);
}

at::Tensor& GRAFT_OPERATOR(nansum_out)(const at::Tensor& self, at::OptionalIntArrayRef dim,
                                       bool keepdim, std::optional<at::ScalarType> dtype,
                                       at::Tensor& out) {
  require(!self.is_complex());
  return native::nansum_out(self, dim, keepdim, dtype, out);
}

}  // namespace graft::binding
