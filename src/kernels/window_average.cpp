// src/kernels/window_average.cpp: the maps (taps.h) that average windows along one dimension.
#include "kernels/window_average.h"

#include <algorithm>

namespace graft {

Taps average_taps(const AverageLine& line) {
  Taps taps{line.to, line.from, {}};
  for (int64_t o = 0; o < line.to; ++o) {
    const int64_t start = o * line.stride - line.padding;
    const int64_t reach = std::min(start + line.kernel, line.from + line.padding);
    const int64_t begin = std::max<int64_t>(start, 0), end = std::min(reach, line.from);
    const int64_t length = line.count_padding ? reach - start : end - begin;
    const double weight = line.total ? 1 : 1 / static_cast<double>(length);
    for (int64_t i = begin; i < end; ++i) taps.add(o, i, weight);
  }
  return taps;
}

Taps adaptive_average_taps(int64_t from, int64_t to) {
  Taps taps{to, from, {}};
  for (int64_t o = 0; o < to; ++o) {
    const int64_t begin = o * from / to, end = ((o + 1) * from + to - 1) / to;
    for (int64_t i = begin; i < end; ++i) taps.add(o, i, 1 / static_cast<double>(end - begin));
  }
  return taps;
}

}  // namespace graft
