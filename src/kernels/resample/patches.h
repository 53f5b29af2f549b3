// src/kernels/resample/patches.h: lines and images cut into overlapping pieces.
#pragma once

#include <cstdint>

#include "kernels/resample/linear_map.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Pieces of kernel elements, dilation apart, that start at i * stride - padding for i < count.
struct PatchLine {
  int64_t from = 0;
  int64_t count = 0;
  int64_t kernel = 1;
  int64_t dilation = 1;
  int64_t padding = 0;
  int64_t stride = 1;
};

// To a line [kernel, count]: element (k, i) is from's i * stride - padding + k * dilation, or 0
// where that lies outside. Its reverse (LinearMap::transposed) sums the pieces up again.
GRAFT_EXPORT LinearMap patch_taps(const PatchLine& line);

// The patches of images, vertical first.
struct PatchWindow {
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1};
};

// columns [n, c, kernel0, kernel1, count0, count1] = the patches of image [n, c, h, w]. Any
// strides, one dtype. Throws Error INVALID_ARGUMENT for sizes that do not fit.
GRAFT_EXPORT void unfold(Stream& stream, const TensorView& columns, const TensorView& image,
                         const PatchWindow& window);
// The reverse: every element of image is the sum of those of columns that were cut from it,
// floating or complex, in float32 (float64 for float64).
GRAFT_EXPORT void fold(Stream& stream, const TensorView& image, const TensorView& columns,
                       const PatchWindow& window);

}  // namespace graft
