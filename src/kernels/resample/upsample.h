// src/kernels/resample/upsample.h: the linear maps that interpolate and pad along one dimension.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/resample/linear_map.h"
#include "runtime/driver/export.h"

namespace graft {

// One dimension of an interpolation from from to to elements, as torch.nn.functional.interpolate
// describes it. scale: the factor that the caller gave, if any; it wins over to / from unless
// align_corners is set. wide: positions and weights are computed in double (for float64 and uint8),
// else in float, so that elements on the edge between two neighbours fall as PyTorch's do.
struct Interpolation {
  int64_t from = 0;
  int64_t to = 0;
  bool align_corners = false;
  std::optional<double> scale;
  bool wide = false;
};

GRAFT_EXPORT LinearMap nearest_taps(const Interpolation& line);
GRAFT_EXPORT LinearMap nearest_exact_taps(const Interpolation& line);
GRAFT_EXPORT LinearMap linear_taps(const Interpolation& line);
// Keys' convolution with a = -0.75 over four neighbours; the edges repeat.
GRAFT_EXPORT LinearMap cubic_taps(const Interpolation& line);

// Antialiased: the filter widens with the factor of a shrinking line, as Pillow does. Weights of
// one element sum to 1.
enum class Filter { kLinear, kCubic, kLanczos };
GRAFT_EXPORT LinearMap antialias_taps(const Interpolation& line, Filter filter);

// Padding by before and after elements; negative numbers take away. Reflection leaves out the edge
// itself. REQUIRES: reflection: both below from; the padded length is at least 1.
GRAFT_EXPORT LinearMap reflection_taps(int64_t from, int64_t before, int64_t after);
GRAFT_EXPORT LinearMap replication_taps(int64_t from, int64_t before, int64_t after);

}  // namespace graft
