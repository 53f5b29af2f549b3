// tests/kernels/detection/region_test.cpp: bins of regions against plain formulas, their gradients
// against the weights of those.
#include "kernels/detection/region.h"

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kN = 2, kH = 6, kW = 7, kBinsY = 2, kBinsX = 3;
constexpr double kScale = 0.5;

struct Case {
  graft_dtype dtype;
  bool positional;
  int64_t channels;  // of the bins
  RegionSamples samples;
};

// Add is called with an element of the image's plane and its weight in the bin.
using Add = std::function<void(int64_t y, int64_t x, double weight)>;
using Bin = std::function<void(const double* box, int64_t y, int64_t x, const Add& add)>;

std::vector<double> boxes() {
  return {0, 1,  2,   9,    10,    //
          1, -4, -3,  14.5, 12.3,  // beyond the image
          1, 3,  3,   3,    3,     // empty
          0, 9,  7,   4,    2,     // upside down
          1, 0,  0.5, 6,    40,    //
          0, 2,  2,   2.5,  5};
}

void sample(double at, int64_t size, const std::function<void(int64_t, double)>& add) {
  if (!(at >= -1 && at <= static_cast<double>(size))) return;
  at = std::max(at, 0.0);
  const int64_t low = std::min(static_cast<int64_t>(at), size - 1);
  const double part = low == size - 1 ? 0 : at - static_cast<double>(low);
  add(low, 1 - part);
  if (part > 0) add(low + 1, part);
}

Bin aligned(const Case& c) {
  return [c](const double* box, int64_t y, int64_t x, const Add& add) {
    const double half = c.samples.half_pixel ? 0.5 : 0;
    double start[2], bin[2], count[2];
    for (int d = 0; d < 2; ++d) {
      start[d] = box[2 - d] * kScale - half;
      double length = box[4 - d] * kScale - half - start[d];
      if (!c.samples.half_pixel) length = std::max(length, 1.0);
      bin[d] = length / static_cast<double>(d == 0 ? kBinsY : kBinsX);
      count[d] = c.samples.ratio > 0 ? static_cast<double>(c.samples.ratio) : std::ceil(bin[d]);
    }
    const double total = c.positional ? count[0] * count[1] : std::max(count[0] * count[1], 1.0);
    if (total == 0) add(0, 0, NAN);  // 0 / 0
    for (double i = 0; i < count[0]; ++i) {
      const double row = start[0] + (static_cast<double>(y) + (i + 0.5) / count[0]) * bin[0];
      for (double j = 0; j < count[1]; ++j) {
        const double column = start[1] + (static_cast<double>(x) + (j + 0.5) / count[1]) * bin[1];
        sample(row, kH, [&](int64_t h, double a) {
          sample(column, kW, [&](int64_t w, double b) { add(h, w, a * b / total); });
        });
      }
    }
  };
}

// The whole elements of a bin; short_by: rows and columns of the image that it leaves out.
void whole(const double* box, int64_t y, int64_t x, int64_t more, int64_t short_by,
           const std::function<void(int64_t, int64_t, int64_t)>& add) {
  const int64_t at[] = {y, x}, bins[] = {kBinsY, kBinsX}, sizes[] = {kH, kW};
  int64_t begin[2], end[2];
  for (int d = 0; d < 2; ++d) {
    const auto first = static_cast<int64_t>(std::round(box[2 - d] * kScale));
    const auto last = static_cast<int64_t>(std::round(box[4 - d] * kScale));
    const double bin = static_cast<double>(std::max<int64_t>(last - first + more, 1)) /
                       static_cast<double>(bins[d]);
    const auto clipped = [&](double from) {
      return std::clamp<int64_t>(static_cast<int64_t>(from) + first, 0, sizes[d] - short_by);
    };
    begin[d] = clipped(std::floor(static_cast<double>(at[d]) * bin));
    end[d] = clipped(std::ceil(static_cast<double>(at[d] + 1) * bin));
  }
  for (int64_t h = begin[0]; h < end[0]; ++h) {
    for (int64_t w = begin[1]; w < end[1]; ++w) {
      add(h, w, (end[0] - begin[0]) * (end[1] - begin[1]));
    }
  }
}

Bin averaged(int64_t short_by) {
  return [short_by](const double* box, int64_t y, int64_t x, const Add& add) {
    whole(box, y, x, 0, short_by,
          [&](int64_t h, int64_t w, int64_t area) { add(h, w, 1 / static_cast<double>(area)); });
  };
}

class Reference {
 public:
  explicit Reference(const Case& c) : c_(c), boxes_(boxes()) {}

  int64_t regions() const { return static_cast<int64_t>(boxes_.size()) / 5; }
  int64_t planes() const { return c_.channels * (c_.positional ? kBinsY * kBinsX : 1); }

  // body(bin's element, image's element, weight)
  void each(const Bin& bin, const std::function<void(size_t, size_t, double)>& body) const {
    for (int64_t r = 0; r < regions(); ++r) {
      const double* box = &boxes_[static_cast<size_t>(r) * 5];
      for (int64_t i = 0; i < c_.channels * kBinsY * kBinsX; ++i) {
        const int64_t x = i % kBinsX, y = i / kBinsX % kBinsY;
        const int64_t plane = c_.positional ? i : i / (kBinsX * kBinsY);
        const int64_t base = (static_cast<int64_t>(box[0]) * planes() + plane) * kH;
        bin(box, y, x, [&](int64_t h, int64_t w, double weight) {
          body(static_cast<size_t>(r * c_.channels * kBinsY * kBinsX + i),
               static_cast<size_t>((base + h) * kW + w), weight);
        });
      }
    }
  }

 private:
  const Case c_;
  const std::vector<double> boxes_;
};

using Forward = std::function<void(const TensorView&, const TensorView&, const BinnedRegions&)>;

// Images have their channels last, so that strides count; gradients of NaN are left out.
void check(const Case& c, const Bin& forward, const Bin& backward, const Forward& run,
           const Forward& run_backward) {
  const Reference reference(c);
  const int64_t planes = reference.planes(), regions = reference.regions();
  const std::vector<int64_t> sizes{kN, planes, kH, kW};
  const std::vector<int64_t> last{planes * kH * kW, 1, kW * planes, planes};
  const auto x = numbers(kN * planes * kH * kW, 1, -2, 2, c.dtype);
  const auto g = numbers(regions * c.channels * kBinsY * kBinsX, 2, -1, 1, c.dtype);
  std::vector<double> expected(g.size()), slopes(x.size());
  reference.each(forward, [&](size_t to, size_t from, double w) { expected[to] += w * x[from]; });
  reference.each(backward, [&](size_t from, size_t to, double w) {
    if (!std::isnan(w)) slopes[to] += w * g[from];
  });
  DeviceTensor images(sizes, last, c.dtype), grad_images(sizes, c.dtype);
  DeviceTensor bins({regions, c.channels, kBinsY, kBinsX}, c.dtype), corners({regions, 5}, c.dtype);
  images.set(x), corners.set(boxes());
  const BinnedRegions given{corners, kScale, c.positional};
  run(bins, images, given);
  const double t = 10 * tolerance(c.dtype);
  EXPECT_TRUE(near(bins.get(), expected, t, t));
  bins.set(g);
  run_backward(grad_images, bins, given);
  EXPECT_TRUE(near(grad_images.get(), slopes, t, t));
}

void check_align(const Case& c) {
  check(
      c, aligned(c), aligned(c),
      [&](const TensorView& bins, const TensorView& images, const BinnedRegions& r) {
        region_align(stream(), bins, images, r, c.samples);
      },
      [&](const TensorView& images, const TensorView& bins, const BinnedRegions& r) {
        region_align_backward(stream(), images, bins, r, c.samples);
      });
}

TEST(Region, Align) {
  for (const bool positional : {false, true}) {
    for (const bool half_pixel : {false, true}) {
      for (const int64_t ratio : {0, 1, 2}) {
        const graft_dtype dtype = ratio == 1 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
        const Case c{dtype, positional, positional ? 2 : 70, {ratio, half_pixel}};
        SCOPED_TRACE(std::to_string(ratio) + (positional ? " p" : "") + (half_pixel ? " h" : ""));
        check_align(c);
      }
    }
  }
}

TEST(Region, AlignInHalfPrecision) {
  const Case c{GRAFT_FLOAT16, false, 3, {2, true}};
  check_align(c);
}

TEST(Region, Average) {
  for (const bool positional : {false, true}) {
    check(
        {positional ? GRAFT_FLOAT32 : GRAFT_FLOAT64, positional, 3, {}}, averaged(1), averaged(0),
        [](const TensorView& bins, const TensorView& images, const BinnedRegions& r) {
          region_average(stream(), bins, images, r);
        },
        [](const TensorView& images, const TensorView& bins, const BinnedRegions& r) {
          region_average_backward(stream(), images, bins, r);
        });
  }
}

TEST(Region, Largest) {
  const Case c{GRAFT_FLOAT32, false, 67, {}};
  const Reference reference(c);
  const auto x = numbers(kN * c.channels * kH * kW, 1, -2, 2, c.dtype);
  const auto g = numbers(reference.regions() * c.channels * kBinsY * kBinsX, 2, -1, 1, c.dtype);
  std::vector<double> expected(g.size(), -INFINITY), where(g.size(), -1), slopes(x.size());
  std::vector<size_t> from(g.size(), x.size());
  const Bin bin = [](const double* box, int64_t y, int64_t x, const Add& add) {
    whole(box, y, x, 1, 0, [&](int64_t h, int64_t w, int64_t) { add(h, w, 1); });
  };
  reference.each(bin, [&](size_t to, size_t element, double) {
    if (x[element] <= expected[to]) return;
    expected[to] = x[element];
    where[to] = static_cast<double>(element % (kH * kW));
    from[to] = element;
  });
  for (size_t i = 0; i < g.size(); ++i) {
    if (from[i] == x.size())
      expected[i] = 0;
    else
      slopes[from[i]] += g[i];
  }
  DeviceTensor images({kN, c.channels, kH, kW}, c.dtype), grad({kN, c.channels, kH, kW}, c.dtype);
  DeviceTensor bins({reference.regions(), c.channels, kBinsY, kBinsX}, c.dtype);
  DeviceTensor positions({reference.regions(), c.channels, kBinsY, kBinsX}, GRAFT_INT32);
  DeviceTensor corners({reference.regions(), 5}, c.dtype);
  images.set(x), corners.set(boxes());
  const BinnedRegions given{corners, kScale, false};
  region_max(stream(), bins, positions, images, given);
  EXPECT_EQ(bins.get(), expected);
  EXPECT_EQ(positions.get(), where);
  bins.set(g);
  region_max_backward(stream(), grad, bins, positions, given);
  EXPECT_TRUE(near(grad.get(), slopes, 1e-5, 1e-5));
  // Beyond the plane nothing is written.
  positions.set(std::vector<double>(g.size(), kH * kW));
  region_max_backward(stream(), grad, bins, positions, given);
  EXPECT_EQ(grad.get(), std::vector<double>(x.size()));
}

// A region without end, or that is no number, ends, and reads nothing beyond the image.
TEST(Region, BoxesWithoutEnd) {
  DeviceTensor images({1, 1, 2, 2}, GRAFT_FLOAT32), bins({4, 1, 1, 1}, GRAFT_FLOAT32);
  DeviceTensor corners({4, 5}, GRAFT_FLOAT32), grad({1, 1, 2, 2}, GRAFT_FLOAT32);
  const double inf = INFINITY;
  images.set({1, 1, 1, 1});
  corners.set({0, 0, 0, inf, inf, 0, -inf, -inf, inf, inf, 0, NAN, 0, 2, 2, 0, -1e30, 0, 1e30, 2});
  const BinnedRegions given{corners, 1, false};
  region_align(stream(), bins, images, given, {0, true});
  EXPECT_EQ(bins.get().size(), 4u);
  region_align_backward(stream(), grad, bins, given, {0, true});
  EXPECT_EQ(grad.get().size(), 4u);
  region_average(stream(), bins, images, given);
  EXPECT_EQ(bins.get().size(), 4u);
}

}  // namespace
