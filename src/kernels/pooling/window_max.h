// src/kernels/pooling/window_max.h: the largest elements of windows of images and volumes.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// How the windows of an output lie in the input, by dimension {depth, height, width}.
struct Windows {
  enum Kind {
    kRegular,     // o * stride - padding + k * dilation for k < kernel, within the input
    kAdaptive,    // floor(o * in / out) to ceil((o + 1) * in / out)
    kFractional,  // kernel elements from a start that samples decide
  } kind = kRegular;
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};
};

// output = largest element of each window, the first of equals (NaN wins); indices (int64) = its
// position (z * h + y) * w + x in the volume of input. Volumes are [n, c, d, h, w], any strides and
// any real dtype. samples: for kFractional alone, [n, c, dimensions] numbers in [0, 1) of input's
// dtype, the last dimensions of the volume in the order that reversed says: width first or not.
// A window without elements gives the lowest number (-inf) and -1; where samples put it, if its
// kernel is not positive, the position from which it would begin. Samples that put a window beyond
// the input are reported (checked_index.h). A fractional kernel is not larger than the input.
GRAFT_EXPORT void window_max(Stream& stream, const TensorView& output, const TensorView& indices,
                             const TensorView& input, const Windows& windows,
                             const TensorView* samples = nullptr, bool reversed = false);

}  // namespace graft
