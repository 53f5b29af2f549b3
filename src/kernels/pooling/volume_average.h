// src/kernels/pooling/volume_average.h: averages of boxes of volumes, with gradients.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// How the boxes of an output lie in the input, by dimension {depth, height, width}. A box is
// divided by the number of its elements (with the padding if count_padding is set), or by divisor
// if that is not 0.
struct AverageBoxes {
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};
  bool count_padding = true;
  int64_t divisor = 0;
};

// Volumes are the last three dimensions; the others agree. Any strides, one floating dtype. Every
// element of output and grad_input is written; sums are in float32 (float64 for float64). Throws
// Error: INVALID_ARGUMENT for sizes that do not fit, UNSUPPORTED for other dtypes.
GRAFT_EXPORT void avg_pool3d(Stream& stream, const TensorView& output, const TensorView& input,
                             const AverageBoxes& boxes);
GRAFT_EXPORT void avg_pool3d_backward(Stream& stream, const TensorView& grad_input,
                                      const TensorView& grad_output, const AverageBoxes& boxes);

// Box z covers floor(z * d / od) to ceil((z + 1) * d / od), rows and columns likewise.
GRAFT_EXPORT void adaptive_avg_pool3d(Stream& stream, const TensorView& output,
                                      const TensorView& input);
GRAFT_EXPORT void adaptive_avg_pool3d_backward(Stream& stream, const TensorView& grad_input,
                                               const TensorView& grad_output);

}  // namespace graft
