// tests/kernels/pooling/pooling_test.cpp: pools and their gradients against loops on the host.
#include "kernels/pooling/pooling.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kN = 2, kC = 5, kH = 9, kW = 11;

std::vector<int64_t> image_strides(int64_t h, int64_t w, bool channels_last) {
  if (channels_last) return {kC * h * w, 1, w * kC, kC};
  return {kC * h * w, h * w, w, 1};
}

// Calls visit(plane, output y, output x, input y, input x) for each pixel inside each window.
template <class Visit>
void each_pixel(const PoolWindow& p, int64_t oh, int64_t ow, Visit visit) {
  for (int64_t i = 0; i < kN * kC * oh * ow; ++i) {
    const int64_t x = i % ow, y = i / ow % oh, plane = i / ow / oh;
    for (int64_t k = 0; k < p.kernel[0] * p.kernel[1]; ++k) {
      const int64_t iy = y * p.stride[0] - p.padding[0] + k / p.kernel[1] * p.dilation[0];
      const int64_t ix = x * p.stride[1] - p.padding[1] + k % p.kernel[1] * p.dilation[1];
      if (iy >= 0 && iy < kH && ix >= 0 && ix < kW) visit(plane, y, x, iy, ix);
    }
  }
}

void check_max(const PoolWindow& p, int64_t oh, int64_t ow, graft_dtype dtype, bool last) {
  const auto x = numbers(kN * kC * kH * kW, 1, -4, 4, GRAFT_INT32);
  const auto g = numbers(kN * kC * oh * ow, 2, -1, 1, dtype);
  std::vector<double> y(g.size(), NAN), at(g.size(), -1), gx(x.size());
  each_pixel(p, oh, ow, [&](int64_t plane, int64_t oy, int64_t ox, int64_t iy, int64_t ix) {
    const size_t o = static_cast<size_t>((plane * oh + oy) * ow + ox);
    const double value = x[static_cast<size_t>((plane * kH + iy) * kW + ix)];
    if (at[o] >= 0 && value <= y[o]) return;
    y[o] = value;
    at[o] = static_cast<double>(iy * kW + ix);
  });
  for (size_t o = 0; o < g.size(); ++o) {
    gx[o / static_cast<size_t>(oh * ow) * kH * kW + static_cast<size_t>(at[o])] += g[o];
  }
  DeviceTensor input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  DeviceTensor output({kN, kC, oh, ow}, image_strides(oh, ow, last), dtype);
  DeviceTensor indices({kN, kC, oh, ow}, image_strides(oh, ow, last), GRAFT_INT64);
  DeviceTensor grad_input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  input.set(x);
  max_pool2d(stream(), output, indices, input, p);
  EXPECT_TRUE(near(output.get(), y, 0, 0));
  EXPECT_TRUE(near(indices.get(), at, 0, 0));
  output.set(g);
  max_pool2d_backward(stream(), grad_input, output, indices, p);
  EXPECT_TRUE(near(grad_input.get(), gx, 4 * tolerance(dtype), 4 * tolerance(dtype)));
}

TEST(MaxPool, ValuesPositionsAndGradients) {
  for (bool last : {false, true}) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (last ? " channels last" : ""));
      check_max({{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 4, 5, dtype, last);
      check_max({{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 5, 6, dtype, last);
      check_max({{3, 2}, {1, 2}, {1, 0}, {2, 3}}, 7, 4, dtype, last);
      check_max({{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 5, 6, dtype, last);  // ceil_mode
    }
  }
}

TEST(MaxPool, NanWins) {
  DeviceTensor input({1, 2, 2}, GRAFT_FLOAT32), output({1, 1, 1}, GRAFT_FLOAT32);
  DeviceTensor indices({1, 1, 1}, GRAFT_INT64);
  input.set({1, NAN, 5, 2});
  max_pool2d(stream(), output, indices, input, {{2, 2}, {2, 2}, {0, 0}, {1, 1}});
  EXPECT_TRUE(std::isnan(output.get()[0]));
  EXPECT_EQ(indices.get()[0], 1);
}

double window_count(const PoolWindow& p, int64_t y, int64_t x, bool pad) {
  double count = 1;
  const int64_t position[2] = {y, x}, size[2] = {kH, kW};
  for (int d = 0; d < 2; ++d) {
    int64_t begin = position[d] * p.stride[d] - p.padding[d];
    int64_t end = std::min(begin + p.kernel[d], size[d] + p.padding[d]);
    if (!pad) begin = std::max<int64_t>(begin, 0), end = std::min(end, size[d]);
    count *= static_cast<double>(end - begin);
  }
  return count;
}

void check_average(const PoolWindow& p, int64_t oh, int64_t ow, bool pad, int64_t divisor,
                   graft_dtype dtype, bool last) {
  const auto x = numbers(kN * kC * kH * kW, 1, -4, 4, dtype);
  const auto g = numbers(kN * kC * oh * ow, 2, -1, 1, dtype);
  std::vector<double> y(g.size()), gx(x.size());
  each_pixel(p, oh, ow, [&](int64_t plane, int64_t oy, int64_t ox, int64_t iy, int64_t ix) {
    const size_t o = static_cast<size_t>((plane * oh + oy) * ow + ox);
    const size_t i = static_cast<size_t>((plane * kH + iy) * kW + ix);
    const double n = divisor ? static_cast<double>(divisor) : window_count(p, oy, ox, pad);
    y[o] += x[i] / n;
    gx[i] += g[o] / n;
  });
  DeviceTensor input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  DeviceTensor output({kN, kC, oh, ow}, image_strides(oh, ow, last), dtype);
  DeviceTensor grad_input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  input.set(x);
  avg_pool2d(stream(), output, input, p, pad, divisor);
  const double t = 2 * tolerance(dtype);
  EXPECT_TRUE(near(output.get(), y, t, t));
  output.set(g);
  avg_pool2d_backward(stream(), grad_input, output, p, pad, divisor);
  EXPECT_TRUE(near(grad_input.get(), gx, t, t));
}

TEST(AveragePool, ValuesAndGradients) {
  for (bool last : {false, true}) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
      for (bool pad : {false, true}) {
        check_average({{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 4, 5, pad, 0, dtype, last);
        check_average({{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 5, 6, pad, 0, dtype, last);
      }
      check_average({{3, 2}, {1, 2}, {1, 0}, {1, 1}}, 9, 5, true, 7, dtype, last);
    }
  }
}

void check_adaptive(int64_t oh, int64_t ow, graft_dtype dtype, bool last) {
  const auto x = numbers(kN * kC * kH * kW, 1, -4, 4, dtype);
  const auto g = numbers(kN * kC * oh * ow, 2, -1, 1, dtype);
  std::vector<double> y(g.size()), gx(x.size());
  for (int64_t o = 0; o < kN * kC * oh * ow; ++o) {
    const int64_t ox = o % ow, oy = o / ow % oh, plane = o / ow / oh;
    const int64_t y0 = oy * kH / oh, y1 = ((oy + 1) * kH + oh - 1) / oh;
    const int64_t x0 = ox * kW / ow, x1 = ((ox + 1) * kW + ow - 1) / ow;
    for (int64_t iy = y0; iy < y1; ++iy) {
      for (int64_t ix = x0; ix < x1; ++ix) {
        const size_t i = static_cast<size_t>((plane * kH + iy) * kW + ix);
        const double n = static_cast<double>((y1 - y0) * (x1 - x0));
        y[static_cast<size_t>(o)] += x[i] / n;
        gx[i] += g[static_cast<size_t>(o)] / n;
      }
    }
  }
  DeviceTensor input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  DeviceTensor output({kN, kC, oh, ow}, image_strides(oh, ow, last), dtype);
  DeviceTensor grad_input({kN, kC, kH, kW}, image_strides(kH, kW, last), dtype);
  input.set(x);
  adaptive_avg_pool2d(stream(), output, input);
  const double t = 4 * tolerance(dtype);
  EXPECT_TRUE(near(output.get(), y, t, t));
  output.set(g);
  adaptive_avg_pool2d_backward(stream(), grad_input, output);
  EXPECT_TRUE(near(grad_input.get(), gx, t, t));
}

TEST(AdaptivePool, ValuesAndGradients) {
  for (bool last : {false, true}) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
      check_adaptive(1, 1, dtype, last);
      check_adaptive(4, 3, dtype, last);
      check_adaptive(9, 11, dtype, last);
      check_adaptive(13, 12, dtype, last);
    }
  }
}

}  // namespace
