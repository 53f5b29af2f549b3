// src/deploy/host_tensor.h: tensors in host memory: places of elements, and words for messages.
#pragma once

#include <string>

#include "kernels/tensor/view.h"

namespace graft::deploy {

// Copies each element to the same place of the other's sizes; addresses are host pointers.
// REQUIRES: equal dtypes and sizes, no overlap; strides in elements, any but negative ones of to.
void copy_elements(const TensorView& to, const TensorView& from);

// The same dtype, sizes and address with row-major strides.
TensorView row_major(const TensorView& view);

// "float32[2, 3]"; a size below 0 is "?".
std::string told(graft_dtype dtype, const int64_t* sizes, size_t rank);

}  // namespace graft::deploy
