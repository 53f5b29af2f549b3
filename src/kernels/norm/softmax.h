// src/kernels/norm/softmax.h: softmax and log_softmax over one dimension, and their gradients.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Computes in float32 (float64 for float64) whatever the storage type. Any strides. A line of only
// -inf gives NaN, as torch does; a line with a NaN is NaN. Exponentials are within 2 ULP.
// output = exp(x - max) / sum exp(x - max) along dim, or its logarithm x - max - log(sum) when log.
// REQUIRES: output and input have the same sizes; 0 <= dim < rank (rank 0: the one element).
GRAFT_EXPORT void softmax(Stream& stream, const TensorView& output, const TensorView& input,
                          int dim, bool log);

// grad_input = (grad - sum(grad * output)) * output for softmax, and
// grad_input = grad - exp(output) * sum(grad) for log_softmax. All sizes equal.
GRAFT_EXPORT void softmax_backward(Stream& stream, const TensorView& grad_input,
                                   const TensorView& grad_output, const TensorView& output, int dim,
                                   bool log);

}  // namespace graft
