// src/kernels/resample/patches.cpp: the linear maps that cut a line into overlapping pieces.
#include "kernels/resample/patches.h"

namespace graft {

LinearMap patch_taps(const PatchLine& line) {
  LinearMap taps{line.kernel * line.count, line.from, {}};
  for (int64_t k = 0; k < line.kernel; ++k) {
    for (int64_t i = 0; i < line.count; ++i) {
      const int64_t at = i * line.stride - line.padding + k * line.dilation;
      if (at >= 0 && at < line.from) taps.add(k * line.count + i, at);
    }
  }
  return taps;
}

}  // namespace graft
