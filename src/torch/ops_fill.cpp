// src/torch/ops_fill.cpp: sets every element of a tensor to one number.
#include "kernels/fill.h"
#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"

namespace graft::binding {

// Without a TensorIterator: one operand, no promotion, and overlap inside it does no harm.
at::Tensor& GRAFT_OPERATOR(fill__Scalar)(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() != 0) {
    fill(stream_of(self), view_of(self), to_graft(value, self.scalar_type()));
  }
  return self;
}

at::Tensor& GRAFT_OPERATOR(zero_)(at::Tensor& self) {
  if (self.numel() != 0) {
    fill(stream_of(self), view_of(self), Scalar::of_integer(to_graft(self.scalar_type()), 0));
  }
  return self;
}

}  // namespace graft::binding
