// src/torch/tensor/opmath.h: tensors in the dtype that operators compute in.
#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

namespace graft::binding {

// The tensor in float32 for the half types, else itself.
inline at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

}  // namespace graft::binding
