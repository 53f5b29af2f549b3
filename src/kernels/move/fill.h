// src/kernels/move/fill.h: sets every element of a tensor to one number.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// to[i] = value, converted to to's dtype. Any strides; without gaps it is the driver's fill.
// Throws as pointwise does.
GRAFT_EXPORT void fill(Stream& stream, const TensorView& to, Scalar value);

}  // namespace graft
