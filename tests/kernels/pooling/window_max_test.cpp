// tests/kernels/pooling/window_max_test.cpp: largest elements of windows against loops on the host.
#include "kernels/pooling/window_max.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kPlanes = 6, kSize[3] = {5, 6, 7};

// starts(d, o) gives the window's first element and its end.
template <class Range>
void check(const Windows& windows, const int64_t (&out)[3], graft_dtype dtype, bool channels_last,
           Range range, const std::vector<double>& samples = {}) {
  const int64_t volume = kSize[0] * kSize[1] * kSize[2], results = out[0] * out[1] * out[2];
  const auto x = numbers(kPlanes * volume, 1, -9, 9, GRAFT_INT32);
  std::vector<double> best, where;
  for (int64_t i = 0; i < kPlanes * results; ++i) {
    const int64_t plane = i / results;
    const int64_t at[3] = {i / out[2] / out[1] % out[0], i / out[2] % out[1], i % out[2]};
    int64_t ranges[3][2];
    for (int d = 0; d < 3; ++d) range(plane, d, at[d], ranges[d]);
    best.push_back(NAN), where.push_back(-1);
    for (int64_t z = ranges[0][0]; z < ranges[0][1]; z += windows.dilation[0]) {
      for (int64_t y = ranges[1][0]; y < ranges[1][1]; y += windows.dilation[1]) {
        for (int64_t k = ranges[2][0]; k < ranges[2][1]; k += windows.dilation[2]) {
          if (z < 0 || y < 0 || k < 0) continue;
          if (z >= kSize[0] || y >= kSize[1] || k >= kSize[2]) continue;
          const int64_t position = (z * kSize[1] + y) * kSize[2] + k;
          const double value = x[static_cast<size_t>(plane * volume + position)];
          if (where.back() >= 0 && value <= best.back()) continue;
          best.back() = value, where.back() = static_cast<double>(position);
        }
      }
    }
  }
  auto tensor = [&](const int64_t(&s)[3], graft_dtype type) {
    const int64_t c = kPlanes / 2, n = s[0] * s[1] * s[2];
    const std::vector<int64_t> sizes{2, c, s[0], s[1], s[2]};
    if (channels_last) {
      return DeviceTensor(sizes, {n * c, 1, s[1] * s[2] * c, s[2] * c, c}, type);
    }
    return DeviceTensor(sizes, {n * c, n, s[1] * s[2], s[2], 1}, type);
  };
  DeviceTensor input = tensor(kSize, dtype), output = tensor(out, dtype);
  DeviceTensor indices = tensor(out, GRAFT_INT64);
  DeviceTensor draws({2, kPlanes / 2, 3}, dtype);
  input.set(x);
  if (!samples.empty()) draws.set(samples);
  window_max(stream(), output, indices, input, windows, samples.empty() ? nullptr : &draws.view());
  EXPECT_TRUE(near(output.get(), best, 0, 0));
  EXPECT_TRUE(near(indices.get(), where, 0, 0));
}

TEST(WindowMax, RegularWindows) {
  const Windows windows{Windows::kRegular, {2, 3, 2}, {2, 1, 3}, {1, 1, 0}, {1, 2, 3}};
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_INT64}) {
    for (bool last : {false, true}) {
      check(windows, {3, 4, 2}, dtype, last, [&](int64_t, int d, int64_t o, int64_t* range) {
        range[0] = o * windows.stride[d] - windows.padding[d];
        range[1] = range[0] + (windows.kernel[d] - 1) * windows.dilation[d] + 1;
      });
    }
  }
}

TEST(WindowMax, AdaptiveWindows) {
  const int64_t out[3] = {2, 4, 9};
  check({Windows::kAdaptive}, {2, 4, 9}, GRAFT_FLOAT32, false,
        [&](int64_t, int d, int64_t o, int64_t* range) {
          range[0] = o * kSize[d] / out[d];
          range[1] = ((o + 1) * kSize[d] + out[d] - 1) / out[d];
        });
}

TEST(WindowMax, FractionalWindows) {
  const auto samples = numbers(kPlanes * 3, 5, 0, 1, GRAFT_FLOAT32);
  const Windows windows{Windows::kFractional, {2, 2, 3}};
  const int64_t out[3] = {3, 1, 4};
  check(
      windows, {3, 1, 4}, GRAFT_FLOAT32, true,
      [&](int64_t plane, int d, int64_t o, int64_t* range) {
        const double last = static_cast<double>(kSize[d] - windows.kernel[d]);
        const double u = samples[static_cast<size_t>(plane * 3 + d)];
        const double alpha = last / std::max<double>(1, static_cast<double>(out[d] - 1));
        range[0] = static_cast<int64_t>((static_cast<double>(o) + u) * alpha) -
                   static_cast<int64_t>(u * alpha);
        if (o == out[d] - 1) range[0] = static_cast<int64_t>(last);
        range[1] = range[0] + windows.kernel[d];
      },
      samples);
}

TEST(WindowMax, NanWins) {
  DeviceTensor input({1, 1, 1, 2, 2}, GRAFT_FLOAT32), output({1, 1, 1, 1, 1}, GRAFT_FLOAT32);
  DeviceTensor indices({1, 1, 1, 1, 1}, GRAFT_INT64);
  input.set({1, NAN, 5, 2});
  window_max(stream(), output, indices, input, {Windows::kRegular, {1, 2, 2}});
  EXPECT_TRUE(std::isnan(output.get()[0]));
  EXPECT_EQ(indices.get()[0], 1);
}

}  // namespace
