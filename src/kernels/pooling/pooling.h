// src/kernels/pooling/pooling.h: max, average and adaptive average pooling of images, with
// gradients.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Images are [n, c, h, w] or [c, h, w] with any strides; output and gradient sizes come from the
// caller (so ceil_mode is the caller's arithmetic). Arrays hold {vertical, horizontal}.
// Gradients are summed per input element in window order: deterministic. Sums are in float32
// (float64 for float64).
struct PoolWindow {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1};
};

// output = largest element of each window (NaN wins, padding never does); indices (int64) = its
// position y * w + x in the plane of input, the first of equals. A window without elements gives
// the lowest number (-inf) and -1.
GRAFT_EXPORT void max_pool2d(Stream& stream, const TensorView& output, const TensorView& indices,
                             const TensorView& input, const PoolWindow& window);

// Every element of grad_input is written. indices are max_pool2d's own for this input size: those
// of windows without elements take no part, others beyond the plane are reported (checked_index.h).
GRAFT_EXPORT void max_pool2d_backward(Stream& stream, const TensorView& grad_input,
                                      const TensorView& grad_output, const TensorView& indices,
                                      const PoolWindow& window);

// divisor: 0 = the number of elements of the window (with the padding when count_include_pad).
GRAFT_EXPORT void avg_pool2d(Stream& stream, const TensorView& output, const TensorView& input,
                             const PoolWindow& window, bool count_include_pad, int64_t divisor);
GRAFT_EXPORT void avg_pool2d_backward(Stream& stream, const TensorView& grad_input,
                                      const TensorView& grad_output, const PoolWindow& window,
                                      bool count_include_pad, int64_t divisor);

// Window y of output covers rows floor(y * h / oh) to ceil((y + 1) * h / oh), columns likewise.
GRAFT_EXPORT void adaptive_avg_pool2d(Stream& stream, const TensorView& output,
                                      const TensorView& input);
GRAFT_EXPORT void adaptive_avg_pool2d_backward(Stream& stream, const TensorView& grad_input,
                                               const TensorView& grad_output);

}  // namespace graft
