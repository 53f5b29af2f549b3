// src/torch/tensor/operands.cpp: tensors of hand-written operators as the kernel library takes
// them.
#include "torch/tensor/operands.h"

#include "runtime/driver/error.h"

namespace graft::binding {

double real_factor(const at::Scalar& number) {
  if (number.isComplex()) throw Error(GRAFT_UNSUPPORTED, "no kernel for a complex factor");
  return number.toDouble();
}

}  // namespace graft::binding
