// tests/kernels/detection/deformable_patches_test.cpp: patches at given positions against a plain
// formula, their gradients against differences of that formula.
#include "kernels/detection/deformable_patches.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kN = 2, kGroups = 2, kH = 5, kW = 6, kPatch = 6;
const DeformablePatches kPatches{{3, 2}, {2, 1}, {1, 2}, {1, 2}, 8};
constexpr int64_t kLocations = 3 * 8;

struct Given {
  std::vector<double> images, offsets, mask;
  int64_t channels;  // of a group
  bool masked;

  double image(int64_t n, int64_t c, int64_t y, int64_t x) const {
    if (y < 0 || y >= kH || x < 0 || x >= kW) return 0;
    return images[static_cast<size_t>(((n * kGroups * channels + c) * kH + y) * kW + x)];
  }
  double column(int64_t i) const {
    const int64_t l = i % kLocations, k = i / kLocations % kPatch;
    const int64_t c = i / kLocations / kPatch % (kGroups * channels);
    const int64_t n = i / kLocations / kPatch / (kGroups * channels), g = c / channels;
    const auto plane = static_cast<size_t>((n * kGroups + g) * kPatch + k);
    double at[2];
    for (int d = 0; d < 2; ++d) {
      const int64_t out = d == 0 ? l / kPatches.columns : l % kPatches.columns;
      const int64_t in = d == 0 ? k / kPatches.kernel[1] : k % kPatches.kernel[1];
      at[d] = static_cast<double>(out * kPatches.stride[d] - kPatches.padding[d] +
                                  in * kPatches.dilation[d]) +
              offsets[(plane * 2 + static_cast<size_t>(d)) * kLocations + static_cast<size_t>(l)];
    }
    const double low[] = {std::floor(at[0]), std::floor(at[1])};
    double sum = 0;
    for (int64_t dy = 0; dy < 2; ++dy) {
      for (int64_t dx = 0; dx < 2; ++dx) {
        const double a = at[0] - low[0], b = at[1] - low[1];
        const double weight = (dy == 1 ? a : 1 - a) * (dx == 1 ? b : 1 - b);
        sum += weight *
               image(n, c, static_cast<int64_t>(low[0]) + dy, static_cast<int64_t>(low[1]) + dx);
      }
    }
    return masked ? sum * mask[plane * kLocations + static_cast<size_t>(l)] : sum;
  }
};

// The slope of the columns' product with g in each of the numbers.
std::vector<double> slopes(Given& given, std::vector<double>& of, const std::vector<double>& g) {
  std::vector<double> found;
  const auto total = [&] {
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += g[i] * given.column(static_cast<int64_t>(i));
    return sum;
  };
  for (double& number : of) {
    const double kept = number, step = 1e-6;
    number = kept + step;
    const double above = total();
    number = kept - step;
    found.push_back((above - total()) / (2 * step));
    number = kept;
  }
  return found;
}

void check(graft_dtype dtype, int64_t channels, bool masked, bool gradients) {
  SCOPED_TRACE(std::string(name_of(dtype)) + (masked ? " masked" : ""));
  const int64_t all = kGroups * channels, cells = kN * kGroups * kPatch * kLocations;
  Given given{numbers(kN * all * kH * kW, 1, -2, 2, dtype), numbers(2 * cells, 2, -2.4, 2.4, dtype),
              numbers(cells, 3, 0, 1, dtype), channels, masked};
  DeviceTensor columns({kN, all, kPatch, kLocations}, dtype);
  DeviceTensor images({kN, all, kH, kW}, {kH * kW * all, 1, kW * all, all}, dtype);
  DeviceTensor offsets({kN, kGroups, kPatch, 2, kLocations}, dtype);
  DeviceTensor mask({kN, kGroups, kPatch, kLocations}, dtype);
  images.set(given.images), offsets.set(given.offsets), mask.set(given.mask);
  const TensorView* factor = masked ? &mask.view() : nullptr;
  deformable_patches(stream(), columns, images, offsets, factor, kPatches);
  std::vector<double> expected;
  for (int64_t i = 0; i < kN * all * kPatch * kLocations; ++i) expected.push_back(given.column(i));
  const double t = 20 * tolerance(dtype);
  EXPECT_TRUE(near(columns.get(), expected, t, t));
  if (!gradients) return;
  const auto g = numbers(static_cast<int64_t>(expected.size()), 4, -1, 1, dtype);
  DeviceTensor grad_images({kN, all, kH, kW}, dtype);
  DeviceTensor grad_offsets({kN, kGroups, kPatch, 2, kLocations}, dtype);
  DeviceTensor grad_mask({kN, kGroups, kPatch, kLocations}, dtype);
  columns.set(g);
  deformable_patches_images_backward(stream(), grad_images, columns, offsets, factor, kPatches);
  EXPECT_TRUE(near(grad_images.get(), slopes(given, given.images, g), 1e-5, 1e-5));
  deformable_patches_offsets_backward(stream(), grad_offsets, masked ? &grad_mask.view() : nullptr,
                                      columns, images, offsets, factor, kPatches);
  EXPECT_TRUE(near(grad_offsets.get(), slopes(given, given.offsets, g), 1e-5, 1e-5));
  if (masked) {
    EXPECT_TRUE(near(grad_mask.get(), slopes(given, given.mask, g), 1e-5, 1e-5));
  }
}

TEST(DeformablePatches, AgainstAFormula) {
  check(GRAFT_FLOAT64, 2, false, true);
  check(GRAFT_FLOAT64, 1, true, true);
  check(GRAFT_FLOAT32, 17, true, false);
  check(GRAFT_FLOAT16, 1, true, false);
}

TEST(DeformablePatches, PositionsThatAreNoNumber) {
  DeviceTensor columns({1, 1, 1, 3}, GRAFT_FLOAT32), images({1, 1, 1, 3}, GRAFT_FLOAT32);
  DeviceTensor offsets({1, 1, 1, 2, 3}, GRAFT_FLOAT32), grad({1, 1, 1, 3}, GRAFT_FLOAT32);
  images.set({1, 2, 3});
  offsets.set({NAN, INFINITY, 0, 0, 0, -1e30});
  const DeformablePatches plain{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 3};
  deformable_patches(stream(), columns, images, offsets, nullptr, plain);
  EXPECT_EQ(columns.get(), (std::vector<double>{0, 0, 0}));
  columns.set({1, 1, 1});
  deformable_patches_images_backward(stream(), grad, columns, offsets, nullptr, plain);
  EXPECT_EQ(grad.get(), (std::vector<double>{0, 0, 0}));
}

}  // namespace
