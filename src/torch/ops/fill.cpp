// src/torch/ops/fill.cpp: sets every element of a tensor to one number.
#include "kernels/move/fill.h"

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

Scalar fill_number(const at::Scalar& value, at::ScalarType type, int64_t numel) {
  const bool relaxed = numel == 1 && at::isReducedFloatingType(type);
  return relaxed ? Scalar::of(to_graft(type), value.to<double>()) : to_graft(value, type);
}

// Without a TensorIterator: one operand, no promotion, and overlap inside it does no harm.
at::Tensor& GRAFT_OPERATOR(fill__Scalar)(at::Tensor& self, const at::Scalar& value) {
  const Scalar number = fill_number(value, self.scalar_type(), self.numel());
  if (self.numel() != 0) fill(stream_of(self), view_of(self), number);
  return self;
}

at::Tensor& GRAFT_OPERATOR(zero_)(at::Tensor& self) {
  if (self.numel() != 0) {
    fill(stream_of(self), view_of(self), Scalar::of_integer(to_graft(self.scalar_type()), 0));
  }
  return self;
}

}  // namespace graft::binding
