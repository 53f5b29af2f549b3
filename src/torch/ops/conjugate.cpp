// src/torch/ops/conjugate.cpp: conjugation in place.
#include <ATen/ops/conj_physical_ops.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"

namespace graft::binding {

// PyTorch's own calls conj_physical.out without the dispatcher, which alone knows the fallback.
at::Tensor& GRAFT_OPERATOR(conj_physical_)(at::Tensor& self) {
  return self.is_complex() ? at::_ops::conj_physical_out::call(self, self) : self;
}

}  // namespace graft::binding
