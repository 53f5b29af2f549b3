// src/kernels/pooling/window_average.h: the linear maps that average windows along one dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/resample/linear_map.h"
#include "runtime/driver/export.h"

namespace graft {

// Windows o * stride - padding + k, k < kernel, of a line; to of them. Each term weighs 1 / length
// of its window, so that the product over dimensions is the average of a box: the length counts the
// padding (as far as padding elements behind the end) when count_padding is set, else only elements
// of the line. total: the weight is 1 instead, for sums that are divided elsewhere.
struct AverageLine {
  int64_t from = 0;
  int64_t to = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  bool count_padding = true;
  bool total = false;
};
GRAFT_EXPORT LinearMap average_taps(const AverageLine& line);

// The length of each of the line.to windows; total has no part in it.
GRAFT_EXPORT std::vector<int64_t> window_lengths(const AverageLine& line);

// Windows floor(o * from / to) to ceil((o + 1) * from / to), averaged.
GRAFT_EXPORT LinearMap adaptive_average_taps(int64_t from, int64_t to);

}  // namespace graft
