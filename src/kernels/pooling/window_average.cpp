// src/kernels/pooling/window_average.cpp: the linear maps that average windows along one
// dimension.
#include "kernels/pooling/window_average.h"

#include <algorithm>

namespace graft {

namespace {

// Elements begin to end - 1 of the line, and what their sum is divided by.
struct Window {
  int64_t begin, end, length;
};

Window window_of(const AverageLine& line, int64_t o) {
  const int64_t start = o * line.stride - line.padding;
  const int64_t reach = std::min(start + line.kernel, line.from + line.padding);
  const int64_t begin = std::max<int64_t>(start, 0), end = std::min(reach, line.from);
  return {begin, end, line.count_padding ? reach - start : end - begin};
}

}  // namespace

LinearMap average_taps(const AverageLine& line) {
  LinearMap taps{line.to, line.from, {}};
  for (int64_t o = 0; o < line.to; ++o) {
    const Window window = window_of(line, o);
    const double weight = line.total ? 1 : 1 / static_cast<double>(window.length);
    for (int64_t i = window.begin; i < window.end; ++i) taps.add(o, i, weight);
  }
  return taps;
}

std::vector<int64_t> window_lengths(const AverageLine& line) {
  std::vector<int64_t> lengths;
  for (int64_t o = 0; o < line.to; ++o) lengths.push_back(window_of(line, o).length);
  return lengths;
}

LinearMap adaptive_average_taps(int64_t from, int64_t to) {
  LinearMap taps{to, from, {}};
  for (int64_t o = 0; o < to; ++o) {
    const int64_t begin = o * from / to, end = ((o + 1) * from + to - 1) / to;
    for (int64_t i = begin; i < end; ++i) taps.add(o, i, 1 / static_cast<double>(end - begin));
  }
  return taps;
}

}  // namespace graft
