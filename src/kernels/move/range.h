// src/kernels/move/range.h: evenly spaced numbers.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Element i = start + i * step in row-major order of output, any strides. Integer outputs take
// both scalars as int64; floating ones compute in float64 and round once.
GRAFT_EXPORT void arange(Stream& stream, const TensorView& output, Scalar start, Scalar step);

// count evenly spaced elements from start to end, both included (rank 1; one element is start).
// The second half counts back from end, so that both ends are exact. Complex numbers by parts.
GRAFT_EXPORT void linspace(Stream& stream, const TensorView& output, Scalar start, Scalar end);

}  // namespace graft
