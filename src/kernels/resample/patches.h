// src/kernels/resample/patches.h: the linear maps that cut a line into overlapping pieces.
#pragma once

#include <cstdint>

#include "kernels/resample/linear_map.h"
#include "runtime/driver/export.h"

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

}  // namespace graft
