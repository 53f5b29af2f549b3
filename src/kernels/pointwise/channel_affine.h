// src/kernels/pointwise/channel_affine.h: a linear function of images with factors for each
// channel.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// Where the channels of dense images [n, c, plane] lie.
struct ImageLayout {
  int64_t n = 0;
  int64_t channels = 0;
  int64_t plane = 0;
  bool channels_last = false;
};

// output = a[c] * x + b[c] * (y - center[c]) + d[c]; y and b may be null, and then
// output = a[c] * (x - center[c]) + d[c]. center, null where it is 0, keeps what a mean that is
// large beside the deviations from it would take. Images share one layout; a, b, d and center are
// contiguous vectors of one dtype.
void channel_affine(Stream& stream, const ImageLayout& layout, const TensorView& output,
                    const TensorView& x, const TensorView& a, const TensorView* y,
                    const TensorView* b, const TensorView& d, const TensorView* center);

}  // namespace graft
