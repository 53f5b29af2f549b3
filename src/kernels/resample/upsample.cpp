// src/kernels/resample/upsample.cpp: the linear maps that interpolate and pad along one
// dimension.
#include "kernels/resample/upsample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace graft {
namespace {

template <class Real>
Real given_scale(const Interpolation& line) {
  if (line.scale.has_value() && *line.scale > 0) return static_cast<Real>(1.0 / *line.scale);
  return static_cast<Real>(line.from) / static_cast<Real>(line.to);
}

template <class Real>
Real scale_of(const Interpolation& line) {
  if (!line.align_corners) return given_scale<Real>(line);
  if (line.to <= 1) return 0;
  return static_cast<Real>(line.from - 1) / static_cast<Real>(line.to - 1);
}

// The source position of element i: a whole one and the part beyond it.
template <class Real>
struct Position {
  int64_t whole;
  Real part;

  Position(const Interpolation& line, Real scale, int64_t i, bool cubic) {
    const Real half = static_cast<Real>(0.5);
    Real at = scale * static_cast<Real>(i);
    if (!line.align_corners) {
      at = scale * (static_cast<Real>(i) + half) - half;
      if (!cubic) at = std::max<Real>(at, 0);
    }
    whole = std::min(static_cast<int64_t>(std::floor(static_cast<float>(at))), line.from - 1);
    part = std::clamp<Real>(at - static_cast<Real>(whole), 0, 1);
  }
};

template <class Real>
Real near_weight(Real x, Real a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class Real>
Real far_weight(Real x, Real a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <class Real>
LinearMap linear(const Interpolation& line) {
  if (line.from == line.to) return LinearMap::identity(line.to);
  LinearMap taps{line.to, line.from, {}};
  const Real scale = scale_of<Real>(line);
  for (int64_t i = 0; i < line.to; ++i) {
    const Position<Real> at(line, scale, i, false);
    taps.add(i, at.whole, 1 - at.part);
    taps.add(i, std::min(at.whole + 1, line.from - 1), at.part);
  }
  return taps;
}

template <class Real>
LinearMap cubic(const Interpolation& line) {
  LinearMap taps{line.to, line.from, {}};
  const Real scale = scale_of<Real>(line), a = static_cast<Real>(-0.75);
  for (int64_t i = 0; i < line.to; ++i) {
    const Position<Real> at(line, scale, i, true);
    const Real t = at.part, weights[] = {far_weight<Real>(t + 1, a), near_weight<Real>(t, a),
                                         near_weight<Real>(1 - t, a), far_weight<Real>(2 - t, a)};
    for (int64_t k = 0; k < 4; ++k) {
      taps.add(i, std::clamp<int64_t>(at.whole + k - 1, 0, line.from - 1), weights[k]);
    }
  }
  return taps;
}

int64_t reach_of(Filter filter) {  // elements on both sides
  return filter == Filter::kLinear ? 2 : filter == Filter::kCubic ? 4 : 6;
}

template <class Real>
Real filtered(Filter filter, Real x) {
  x = std::abs(x);
  if (filter == Filter::kLinear) return x < 1 ? 1 - x : 0;
  if (filter == Filter::kCubic) {
    const Real a = static_cast<Real>(-0.5);
    if (x < 1) return near_weight<Real>(x, a);
    return x < 2 ? far_weight<Real>(x, a) : 0;
  }
  const Real turn = std::numbers::pi_v<Real> * x;
  if (x == 0) return 1;
  return x < 3 ? std::sin(turn) / turn * std::sin(turn / 3) / (turn / 3) : 0;
}

template <class Real>
LinearMap antialias(const Interpolation& line, Filter filter) {
  LinearMap taps{line.to, line.from, {}};
  const Real scale = scale_of<Real>(line), half = static_cast<Real>(0.5);
  const Real inverse = scale >= 1 ? 1 / scale : 1;
  const Real reach = static_cast<Real>(reach_of(filter)) * half;
  const Real support = scale >= 1 ? reach * scale : reach;
  const int64_t most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  for (int64_t i = 0; i < line.to; ++i) {
    const Real center = scale * (static_cast<Real>(i) + half);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + half), 0);
    const int64_t end = std::min(static_cast<int64_t>(center + support + half), line.from);
    const int64_t count = std::clamp<int64_t>(end - first, 0, most);
    std::vector<Real> weights;
    Real total = 0;
    for (int64_t k = 0; k < count; ++k) {
      weights.push_back(
          filtered<Real>(filter, (static_cast<Real>(k + first) - center + half) * inverse));
      total += weights.back();
    }
    for (int64_t k = 0; k < count; ++k) {
      const Real weight = weights[static_cast<size_t>(k)];
      taps.add(i, first + k, total == 0 ? weight : weight / total);
    }
  }
  return taps;
}

LinearMap picked(const Interpolation& line, double shift) {
  LinearMap taps{line.to, line.from, {}};
  const float scale = given_scale<float>(line);
  for (int64_t i = 0; i < line.to; ++i) {
    const double at = (static_cast<double>(i) + shift) * static_cast<double>(scale);
    const float rounded = shift == 0 ? static_cast<float>(i) * scale : static_cast<float>(at);
    taps.add(i, std::min(static_cast<int64_t>(std::floor(rounded)), line.from - 1));
  }
  return taps;
}

}  // namespace

LinearMap nearest_taps(const Interpolation& line) {
  if (line.to == line.from) return LinearMap::identity(line.to);
  if (line.to != 2 * line.from) return picked(line, 0);
  LinearMap taps{line.to, line.from, {}};
  for (int64_t i = 0; i < line.to; ++i) taps.add(i, i / 2);
  return taps;
}

LinearMap nearest_exact_taps(const Interpolation& line) { return picked(line, 0.5); }

LinearMap linear_taps(const Interpolation& line) {
  return line.wide ? linear<double>(line) : linear<float>(line);
}

LinearMap cubic_taps(const Interpolation& line) {
  return line.wide ? cubic<double>(line) : cubic<float>(line);
}

LinearMap antialias_taps(const Interpolation& line, Filter filter) {
  return line.wide ? antialias<double>(line, filter) : antialias<float>(line, filter);
}

LinearMap reflection_taps(int64_t from, int64_t before, int64_t after) {
  LinearMap taps{from + before + after, from, {}};
  for (int64_t i = 0; i < taps.to; ++i) {
    const int64_t at = std::abs(i - before);
    taps.add(i, at < from ? at : 2 * (from - 1) - at);
  }
  return taps;
}

LinearMap replication_taps(int64_t from, int64_t before, int64_t after) {
  LinearMap taps{from + before + after, from, {}};
  for (int64_t i = 0; i < taps.to; ++i) {
    taps.add(i, std::clamp<int64_t>(i - before, 0, from - 1));
  }
  return taps;
}

}  // namespace graft
