// src/kernels/move/transpose.h: copies between views whose dense dimensions differ.
#pragma once

#include "kernels/tensor/axes.h"
#include "runtime/stream/stream.h"

namespace graft {

// Copies when it is this kernel's case: to is dense along the innermost loop, from along another
// one, both loops are long enough. Returns false, and does nothing, when not. The dtypes are equal.
// axes: Axes::joined of {to, from}.
bool transpose(Stream& stream, const TensorView& to, const TensorView& from, const Axes& axes);

}  // namespace graft
