// tests/kernels/resample/interpolate_test.cpp: images made larger and smaller, against their maps.
#include "kernels/resample/interpolate.h"

#include "kernels/resample/upsample.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Line = std::vector<double>;

// One line of rows lines mapped.
Line mapped(const Line& values, const LinearMap& map) {
  const size_t rows = values.size() / static_cast<size_t>(map.from);
  Line result(rows * static_cast<size_t>(map.to));
  for (size_t row = 0; row < rows; ++row) {
    for (const Tap& tap : map.list) {
      result[row * static_cast<size_t>(map.to) + static_cast<size_t>(tap.to)] +=
          tap.weight * values[row * static_cast<size_t>(map.from) + static_cast<size_t>(tap.from)];
    }
  }
  return result;
}

TEST(Interpolate, EachFilterIsItsMap) {
  const std::optional<double> scales[] = {std::nullopt};
  const Interpolation line{6, 15, false, {}, true}, aligned{6, 15, true, {}, true};
  const std::tuple<Resizing::Filter, bool, LinearMap> cases[] = {
      {Resizing::kNearest, false, nearest_taps(line)},
      {Resizing::kNearestExact, false, nearest_exact_taps(line)},
      {Resizing::kLinear, false, linear_taps(line)},
      {Resizing::kLinear, true, linear_taps(aligned)},
      {Resizing::kCubic, true, cubic_taps(aligned)},
      {Resizing::kLinearAntialias, false, antialias_taps(line, Filter::kLinear)},
      {Resizing::kCubicAntialias, false, antialias_taps(line, Filter::kCubic)},
      {Resizing::kLanczosAntialias, false, antialias_taps(line, Filter::kLanczos)},
  };
  const Line x = numbers(3 * 6, 1), slopes = numbers(3 * 15, 2);
  for (const auto& [filter, align, map] : cases) {
    SCOPED_TRACE(filter);
    const Resizing resizing{filter, align, scales};
    DeviceTensor small({3, 6}, {6, 1}, GRAFT_FLOAT64), large({3, 15}, {15, 1}, GRAFT_FLOAT64);
    small.set(x);
    interpolate(stream(), large, small, resizing);
    EXPECT_TRUE(near(large.get(), mapped(x, map), 1e-12, 1e-12));
    large.set(slopes);
    interpolate_backward(stream(), small, large, resizing);
    EXPECT_TRUE(near(small.get(), mapped(slopes, map.transposed()), 1e-12, 1e-12));
  }
}

TEST(Interpolate, AGivenScaleWins) {
  const std::optional<double> scales[] = {2.7};
  const Line x = numbers(6, 3);
  DeviceTensor small({6}, {1}, GRAFT_FLOAT64), large({16}, {1}, GRAFT_FLOAT64);
  small.set(x);
  interpolate(stream(), large, small, {Resizing::kLinear, false, scales});
  EXPECT_TRUE(near(large.get(), mapped(x, linear_taps({6, 16, false, 2.7, true})), 1e-12, 1e-12));
}

// Whole numbers: 0.5 is rounded to nearest, as PyTorch does for images of bytes.
TEST(Interpolate, BytesOfImagesAreRounded) {
  const std::optional<double> scales[] = {std::nullopt, std::nullopt};
  DeviceTensor small({1, 2}, {2, 1}, GRAFT_UINT8), large({1, 3}, {3, 1}, GRAFT_UINT8);
  small.set({10, 21});
  interpolate(stream(), large, small, {Resizing::kLinear, true, scales});
  EXPECT_EQ(large.get(), (Line{10, 16, 21}));
}

}  // namespace
