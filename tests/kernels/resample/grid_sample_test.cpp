// tests/kernels/resample/grid_sample_test.cpp: sampling by a grid against a plain formula, its
// gradients against differences of that formula.
#include "kernels/resample/grid_sample.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// An image or volume of one channel, its axes from the outermost to x.
struct Plane {
  std::vector<int64_t> sizes;
  const double* values;

  double folded(double at, double size, const GridSampling& s) const {
    if (s.padding == GridSampling::kZeros) return at;
    const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? size - 1 : size - 0.5;
    while (s.padding == GridSampling::kReflection && low < high && (at < low || at > high)) {
      at = at < low ? 2 * low - at : 2 * high - at;
    }
    return std::min(std::max(at, 0.0), size - 1);
  }
  // Samples the axes from the given one on; offset: the element so far.
  double sample(const double* grid, size_t axis, int64_t offset, const GridSampling& s) const {
    if (axis == sizes.size()) return values[offset];
    const double size = static_cast<double>(sizes[axis]), g = grid[sizes.size() - 1 - axis];
    const double at = s.align_corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    const auto inner = [&](double whole) {
      if (whole < 0 || whole >= size) return 0.0;
      return sample(grid, axis + 1, offset * sizes[axis] + static_cast<int64_t>(whole), s);
    };
    if (s.mode == GridSampling::kCubic) {
      double sum = 0;
      for (int k = -1; k < 3; ++k) {
        const double x = std::abs(at - std::floor(at) - k), a = -0.75;
        const double weight = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                     : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        sum += weight * inner(std::trunc(folded(std::floor(at) + k, size, s)));
      }
      return sum;
    }
    const double inside = folded(at, size, s), low = std::floor(inside);
    if (s.mode == GridSampling::kNearest) return inner(std::nearbyint(inside));
    return (1 - (inside - low)) * inner(low) + (inside - low) * inner(low + 1);
  }
};

struct Case {
  GridSampling sampling;
  std::vector<int64_t> sizes;
  graft_dtype dtype;
};

constexpr int64_t kN = 2, kC = 3, kPoints = 70;

void check(const Case& c) {
  const size_t axes = c.sizes.size();
  int64_t volume = 1;
  for (const int64_t size : c.sizes) volume *= size;
  auto x = numbers(kN * kC * volume, 1, -2, 2, c.dtype);
  auto grid = numbers(kN * kPoints * static_cast<int64_t>(axes), 2, -1.6, 1.6, c.dtype);
  const auto g = numbers(kN * kC * kPoints, 3, -1, 1, c.dtype);
  const auto value = [&](size_t line, size_t p) {
    const Plane plane{c.sizes, x.data() + line * static_cast<size_t>(volume)};
    return plane.sample(grid.data() + (line / kC * kPoints + p) * axes, 0, 0, c.sampling);
  };
  std::vector<double> y, dx(x.size()), dgrid(grid.size());
  for (size_t line = 0; line < kN * kC; ++line) {
    for (size_t p = 0; p < kPoints; ++p) {
      y.push_back(value(line, p));
      for (size_t a = 0; a < axes; ++a) {
        const size_t i = (line / kC * kPoints + p) * axes + a;
        const double kept = grid[i], step = 1e-6;
        grid[i] = kept + step;
        const double above = value(line, p);
        grid[i] = kept - step;
        dgrid[i] += g[line * kPoints + p] * (above - value(line, p)) / (2 * step);
        grid[i] = kept;
      }
    }
    for (size_t e = line * static_cast<size_t>(volume);
         e < (line + 1) * static_cast<size_t>(volume); ++e) {
      const double kept = x[e];
      for (size_t p = 0; p < kPoints; ++p) {
        x[e] = kept + 1;
        dx[e] += g[line * kPoints + p] * (value(line, p) - y[line * kPoints + p]);
        x[e] = kept;
      }
    }
  }
  std::vector<int64_t> sizes{kN, kC};
  sizes.insert(sizes.end(), c.sizes.begin(), c.sizes.end());
  DeviceTensor input(sizes, c.dtype), grad_input(sizes, c.dtype);
  DeviceTensor points({kN, kPoints, static_cast<int64_t>(axes)}, c.dtype);
  DeviceTensor slopes({kN, kPoints, static_cast<int64_t>(axes)}, c.dtype);
  DeviceTensor output({kN, kC, kPoints}, c.dtype);
  input.set(x), points.set(grid);
  grid_sample(stream(), output, input, points, c.sampling);
  const double t = 20 * tolerance(c.dtype);
  EXPECT_TRUE(near(output.get(), y, t, t));
  output.set(g);
  grid_sample_backward(stream(), &grad_input.view(), &slopes.view(), output, input, points,
                       c.sampling);
  EXPECT_TRUE(near(grad_input.get(), dx, t, t));
  if (c.dtype == GRAFT_FLOAT64) {
    EXPECT_TRUE(near(slopes.get(), dgrid, 1e-5, 1e-5));
  }
}

TEST(GridSample, EveryModeAndPadding) {
  for (auto mode : {GridSampling::kLinear, GridSampling::kNearest, GridSampling::kCubic}) {
    for (auto padding : {GridSampling::kZeros, GridSampling::kBorder, GridSampling::kReflection}) {
      for (bool align : {false, true}) {
        SCOPED_TRACE(std::to_string(mode) + " " + std::to_string(padding) + (align ? " a" : ""));
        check({{mode, padding, align}, {4, 5}, GRAFT_FLOAT64});
        check({{mode, padding, align}, {3, 4, 2}, GRAFT_FLOAT64});
      }
    }
  }
}

TEST(GridSample, SinglePrecision) {
  check({{GridSampling::kLinear, GridSampling::kReflection, false}, {4, 5}, GRAFT_FLOAT32});
  check({{GridSampling::kCubic, GridSampling::kBorder, true}, {4, 5}, GRAFT_FLOAT32});
}

std::vector<double> beyond_numbers(const GridSampling& sampling, bool volume) {
  const std::vector<int64_t> sizes =
      volume ? std::vector<int64_t>{1, 1, 1, 2, 2} : std::vector<int64_t>{1, 1, 2, 2};
  DeviceTensor input(sizes, GRAFT_FLOAT32), grid({1, 3, volume ? 3 : 2}, GRAFT_FLOAT32);
  DeviceTensor output({1, 1, 3}, GRAFT_FLOAT32);
  input.set({1, 2, 3, 4});
  if (volume) {
    grid.set({NAN, -1, 0, 1e30, -1, 0, -INFINITY, -1, 0});
  } else {
    grid.set({NAN, -1, 1e30, -1, -INFINITY, -1});
  }
  grid_sample(stream(), output, input, grid, sampling);
  return output.get();
}

TEST(GridSample, WhatIsNoNumber) {
  constexpr auto kZeros = GridSampling::kZeros, kBorder = GridSampling::kBorder;
  const auto expect = [](const GridSampling& sampling, bool volume, std::vector<double> expected) {
    EXPECT_TRUE(near(beyond_numbers(sampling, volume), expected, 0, 0)) << sampling.mode;
  };
  expect({GridSampling::kLinear, kZeros, true}, false, {NAN, 0, NAN});
  expect({GridSampling::kCubic, kZeros, true}, false, {NAN, 0, NAN});
  expect({GridSampling::kNearest, kZeros, true}, false, {0, 0, 0});
  expect({GridSampling::kLinear, kBorder, true}, false, {1, 2, 1});
  expect({GridSampling::kNearest, kBorder, true}, false, {1, 2, 1});
  expect({GridSampling::kLinear, kZeros, true}, true, {0, 0, 0});
  expect({GridSampling::kLinear, kBorder, true}, true, {2, 2, 1});
  expect({GridSampling::kNearest, kBorder, true}, true, {2, 2, 1});
}

}  // namespace
