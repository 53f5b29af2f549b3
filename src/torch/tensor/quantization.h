// src/torch/tensor/quantization.h: what kernels on quantized numbers share.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/tensor/view.h"

namespace graft::binding {

// The smallest and the largest integer of a quantized dtype.
struct Bounds {
  double low, high;
};
Bounds bounds_of(at::ScalarType type);

// A vector's elements along one dimension of like, the same in all others; of a tensor of one
// element the same everywhere. Throws RuntimeError where it lies on another device than like's.
TensorView along(const at::Tensor& vector, const at::Tensor& like, int64_t axis = 0);

// What a kernel takes in the place of a tensor that is the same number everywhere.
Scalar same(double number);

// The scale and the zero point of a tensor. Throws RuntimeError unless it has one pair for all.
struct Affine {
  double scale;
  double zero;
};
Affine affine_of(const at::Tensor& quantized);

}  // namespace graft::binding
