// tests/kernels/convolution_test.cpp: convolutions and their gradients against direct sums.
#include "kernels/convolution/convolution.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/convolution/convolution.h"
#include "kernels/convolution/winograd.h"
#include "kernels/matmul/blocked_matmul.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: optimised
namespace {

using namespace graft;
using namespace graft::test;

struct Case {
  int64_t n, c, h, w, out, kh, kw;
  ConvolutionParameters p;
  int64_t oh() const {
    return (h + 2 * p.padding[0] - p.dilation[0] * (kh - 1) - 1) / p.stride[0] + 1;
  }
  int64_t ow() const {
    return (w + 2 * p.padding[1] - p.dilation[1] * (kw - 1) - 1) / p.stride[1] + 1;
  }
  int64_t inputs() const { return n * c * h * w; }
  int64_t weights() const { return out * (c / p.groups) * kh * kw; }
  int64_t outputs() const { return n * out * oh() * ow(); }
};

// Calls visit(input, weight, output position) for every product of the convolution.
void each_product(const Case& k, const std::function<void(size_t, size_t, size_t)>& visit) {
  const int64_t per_group = k.c / k.p.groups, outs = k.out / k.p.groups;
  const int64_t oh = k.oh(), ow = k.ow();
  for (int64_t i = 0; i < k.outputs() * per_group * k.kh * k.kw; ++i) {
    int64_t rest = i;
    auto take = [&rest](int64_t size) {
      const int64_t index = rest % size;
      rest /= size;
      return index;
    };
    const int64_t kx = take(k.kw), ky = take(k.kh), ic = take(per_group);
    const int64_t x = take(ow), y = take(oh), o = take(k.out), image = rest;
    const int64_t iy = y * k.p.stride[0] - k.p.padding[0] + ky * k.p.dilation[0];
    const int64_t ix = x * k.p.stride[1] - k.p.padding[1] + kx * k.p.dilation[1];
    if (iy < 0 || iy >= k.h || ix < 0 || ix >= k.w) continue;
    const int64_t channel = o / outs * per_group + ic;
    visit(static_cast<size_t>(((image * k.c + channel) * k.h + iy) * k.w + ix),
          static_cast<size_t>(((o * per_group + ic) * k.kh + ky) * k.kw + kx),
          static_cast<size_t>(((image * k.out + o) * oh + y) * ow + x));
  }
}

std::vector<int64_t> strides(int64_t c, int64_t h, int64_t w, bool channels_last) {
  if (channels_last) return {c * h * w, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

void check(const Case& k, graft_dtype dtype, bool channels_last, bool generated) {
  SCOPED_TRACE(std::string(name_of(dtype)) + (channels_last ? " channels last" : "") +
               (generated ? " generated" : "") + " k" + std::to_string(k.kh) + " groups " +
               std::to_string(k.p.groups));
  const auto x = numbers(k.inputs(), 1, -1, 1, dtype), w = numbers(k.weights(), 2, -1, 1, dtype);
  const auto g = numbers(k.outputs(), 3, -1, 1, dtype), b = numbers(k.out, 4, -1, 1, dtype);
  std::vector<double> y(g.size()), gx(x.size()), gw(w.size()), gb(b.size());
  const size_t plane = static_cast<size_t>(k.oh() * k.ow()), out = static_cast<size_t>(k.out);
  for (size_t i = 0; i < y.size(); ++i) y[i] = b[i / plane % out], gb[i / plane % out] += g[i];
  each_product(k, [&](size_t i, size_t j, size_t o) {
    y[o] += x[i] * w[j];
    gx[i] += g[o] * w[j];
    gw[j] += g[o] * x[i];
  });

  const std::vector<int64_t> image{k.n, k.c, k.h, k.w}, result{k.n, k.out, k.oh(), k.ow()};
  const std::vector<int64_t> kernel{k.out, k.c / k.p.groups, k.kh, k.kw};
  DeviceTensor input(image, strides(k.c, k.h, k.w, channels_last), dtype);
  DeviceTensor weight(kernel, dtype), grad_weight(kernel, dtype);
  DeviceTensor output(result, strides(k.out, k.oh(), k.ow(), channels_last), dtype);
  DeviceTensor grad_input(image, strides(k.c, k.h, k.w, channels_last), dtype);
  DeviceTensor bias({k.out}, dtype), grad_bias({k.out}, dtype);
  input.set(x), weight.set(w), bias.set(b);
  const double t = 4 * tolerance(dtype);
  auto run = [&](graft_convolution_kind kind, const ConvolutionViews& views) {
    generated_convolution(stream(), kind, views, &bias.view(), k.p);
  };
  if (generated) {
    run(GRAFT_CONVOLUTION_FORWARD, {input, weight, output});
  } else {
    convolution(stream(), output, input, weight, &bias.view(), k.p);
  }
  EXPECT_TRUE(near(output.get(), y, t, 4 * t));
  output.set(g);
  if (generated) {
    run(GRAFT_CONVOLUTION_BACKWARD_INPUT, {grad_input, weight, output});
    run(GRAFT_CONVOLUTION_BACKWARD_WEIGHT, {input, grad_weight, output});
  } else {
    convolution_backward_input(stream(), grad_input, output, weight, k.p);
    convolution_backward_weight(stream(), grad_weight, output, input, k.p);
  }
  EXPECT_TRUE(near(grad_input.get(), gx, t, 4 * t));
  EXPECT_TRUE(near(grad_weight.get(), gw, t, 16 * t));
  convolution_backward_bias(stream(), grad_bias, output);
  EXPECT_TRUE(near(grad_bias.get(), gb, t, 16 * t));
}

const Case kCases[] = {
    {2, 3, 8, 9, 4, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
    {1, 4, 7, 7, 6, 3, 2, {{2, 1, 1}, {0, 1, 0}, {2, 1, 1}, 2, false}},
    {2, 6, 5, 5, 6, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 6, false}},
    {3, 8, 4, 4, 16, 1, 1, {}},
    {1, 1, 1, 1, 1, 1, 1, {}},
};

// labels: opencl_cpu torn_tables
TEST(Convolution, LibraryAndKernelAgreeWithDirectSums) {
  for (const Case& k : kCases) {
    for (bool channels_last : {false, true}) {
      for (bool generated : {false, true}) {
        check(k, GRAFT_FLOAT32, channels_last, generated);
        check(k, GRAFT_FLOAT64, channels_last, generated);
        check(k, GRAFT_BFLOAT16, channels_last, generated);
      }
    }
  }
}

// Large enough for the product of packed patches.
// labels: opencl_cpu
TEST(Convolution, BlocksOfPatches) {
  const Case cases[] = {
      {2, 5, 13, 11, 9, 3, 3, {{2, 1, 1}, {1, 2, 0}, {1, 2, 1}, 1, false}},
      {2, 40, 6, 7, 24, 1, 1, {}},
      {2, 24, 9, 8, 12, 1, 1, {{2, 2, 1}, {0, 0, 0}, {1, 1, 1}, 1, false}},
      {3, 8, 10, 9, 16, 3, 3, {{2, 3, 1}, {1, 2, 0}, {1, 1, 1}, 1, false}},
      {2, 16, 12, 10, 16, 3, 2, {{1, 2, 1}, {1, 1, 0}, {2, 1, 1}, 2, false}},
      {2, 9, 9, 9, 7, 5, 5, {{1, 1, 1}, {6, 5, 0}, {1, 1, 1}, 1, false}},
      {1, 8, 16, 17, 8, 3, 3, {}},
      // Images of few positions, several of which a panel holds.
      {7, 23, 3, 2, 16, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
      {41, 17, 2, 2, 12, 1, 1, {}},
      {70, 9, 1, 1, 12, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
      {9, 12, 6, 7, 10, 3, 3, {{2, 2, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
      {9, 20, 6, 7, 40, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
  };
  for (const Case& k : cases) {
    for (bool channels_last : {false, true}) {
      check(k, GRAFT_FLOAT32, channels_last, true);
      check(k, GRAFT_BFLOAT16, channels_last, true);
      check(k, GRAFT_FLOAT16, channels_last, true);
    }
  }
}

// Groups of one channel and of a few: strides whose remainders meet no tap, dilations, padding
// beyond the input, rows longer than an item holds, several results of a channel.
// labels: opencl_cpu
TEST(Convolution, DirectSumsOfSmallGroups) {
  const Case cases[] = {
      {2, 70, 9, 11, 70, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 70, false}},
      {2, 12, 10, 13, 12, 3, 3, {{2, 2, 1}, {1, 1, 0}, {1, 1, 1}, 12, false}},
      {1, 6, 16, 15, 18, 3, 2, {{3, 2, 1}, {2, 1, 0}, {2, 3, 1}, 6, false}},
      {2, 5, 8, 9, 10, 1, 1, {{2, 3, 1}, {0, 0, 0}, {1, 1, 1}, 5, false}},
      {2, 12, 9, 8, 24, 3, 3, {{2, 1, 1}, {1, 1, 0}, {1, 2, 1}, 4, false}},
      {2, 7, 9, 140, 14, 3, 5, {{1, 1, 1}, {4, 6, 0}, {1, 1, 1}, 7, false}},
      {2, 4, 5, 300, 4, 5, 5, {{1, 2, 1}, {2, 2, 0}, {1, 1, 1}, 4, false}},
  };
  for (const Case& k : cases) {
    for (bool channels_last : {false, true}) {
      for (const graft_dtype dtype :
           {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
        check(k, dtype, channels_last, true);
      }
    }
  }
}

double largest_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(actual[i] - expected[i]));
  }
  return largest;
}

void check_winograd(const Case& k, graft_dtype dtype, bool channels_last, int results) {
  SCOPED_TRACE(std::string(name_of(dtype)) + (channels_last ? " channels last" : "") + " F" +
               std::to_string(results) + " c" + std::to_string(k.c));
  const auto x = numbers(k.inputs(), 1, -1, 1, dtype), w = numbers(k.weights(), 2, -1, 1, dtype);
  const auto g = numbers(k.outputs(), 3, -1, 1, dtype), b = numbers(k.out, 4, -1, 1, dtype);
  std::vector<double> y(g.size()), gx(x.size());
  const size_t plane = static_cast<size_t>(k.oh() * k.ow()), out = static_cast<size_t>(k.out);
  for (size_t i = 0; i < y.size(); ++i) y[i] = b[i / plane % out];
  each_product(k, [&](size_t i, size_t j, size_t o) {
    y[o] += x[i] * w[j];
    gx[i] += g[o] * w[j];
  });
  const std::vector<int64_t> image{k.n, k.c, k.h, k.w}, result{k.n, k.out, k.oh(), k.ow()};
  DeviceTensor input(image, strides(k.c, k.h, k.w, channels_last), dtype);
  DeviceTensor weight({k.out, k.c, 3, 3}, dtype), bias({k.out}, dtype);
  DeviceTensor output(result, strides(k.out, k.oh(), k.ow(), channels_last), dtype);
  DeviceTensor grad_input(image, strides(k.c, k.h, k.w, channels_last), dtype);
  input.set(x), weight.set(w), bias.set(b);
  winograd_convolution(stream(), GRAFT_CONVOLUTION_FORWARD, {input, weight, output}, &bias.view(),
                       k.p, results);
  // Of exact sums of products of numbers in [-1, 1); a half type rounds the result once more.
  const double each = results == 2 ? 1e-5 : 1e-4;
  const double bound = each * std::sqrt(static_cast<double>(std::max(k.c, k.out)));
  const double t = dtype == GRAFT_FLOAT32 ? 0 : tolerance(dtype);
  EXPECT_TRUE(near(output.get(), y, t, bound)) << largest_error(output.get(), y);
  output.set(g);
  winograd_convolution(stream(), GRAFT_CONVOLUTION_BACKWARD_INPUT, {grad_input, weight, output},
                       nullptr, k.p, results);
  EXPECT_TRUE(near(grad_input.get(), gx, t, bound)) << largest_error(grad_input.get(), gx);
}

// Sizes that tiles do not divide, padding from none to beyond the kernel, many images, few lines.
// labels: opencl_cpu
TEST(Convolution, WinogradAgreesWithDirectSums) {
  const Case cases[] = {
      {2, 5, 13, 11, 9, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
      {1, 17, 9, 10, 19, 3, 3, {}},
      {3, 3, 4, 30, 2, 3, 3, {{1, 1, 1}, {0, 2, 0}, {1, 1, 1}, 1, false}},
      {2, 4, 6, 5, 7, 3, 3, {{1, 1, 1}, {3, 4, 0}, {1, 1, 1}, 1, false}},
      {1, 512, 7, 7, 8, 3, 3, {{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}},
  };
  for (const Case& k : cases) {
    for (const int results : {2, 4}) {
      for (bool channels_last : {false, true}) {
        check_winograd(k, GRAFT_FLOAT32, channels_last, results);
      }
      check_winograd(k, GRAFT_BFLOAT16, false, results);
      check_winograd(k, GRAFT_FLOAT16, true, results);
    }
  }
}

// Through the kernel that is chosen for these sizes: Winograd's where the device runs blocks,
// but for the last ones, which have too few tiles, channels or a stride.
// labels: opencl_cpu
TEST(Convolution, WinogradIsChosenBySize) {
  const ConvolutionParameters padded{{1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 1, false};
  const Case large = {2, 64, 13, 10, 66, 3, 3, padded};
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
    check(large, dtype, dtype == GRAFT_FLOAT16, true);
  }
  const bool blocks = runs_blocks(device());
  const auto chosen = [](const Case& k, graft_dtype dtype) {
    DeviceTensor input({k.n, k.c, k.h, k.w}, dtype), weight({k.out, k.c, 3, 3}, dtype);
    DeviceTensor output({k.n, k.out, k.oh(), k.ow()}, dtype);
    return winograd_results(device(), GRAFT_CONVOLUTION_FORWARD, {input, weight, output}, nullptr,
                            k.p);
  };
  EXPECT_EQ(chosen(large, GRAFT_FLOAT32), blocks ? 2 : 0);
  EXPECT_EQ(chosen({1, 64, 56, 56, 64, 3, 3, padded}, GRAFT_FLOAT32), blocks ? 2 : 0);
  EXPECT_EQ(chosen({1, 64, 56, 56, 64, 3, 3, padded}, GRAFT_BFLOAT16), blocks ? 4 : 0);
  EXPECT_EQ(chosen(large, GRAFT_FLOAT64), 0);
  EXPECT_EQ(chosen({1, 512, 7, 7, 512, 3, 3, padded}, GRAFT_FLOAT32), 0);
  EXPECT_EQ(chosen({2, 16, 56, 56, 64, 3, 3, padded}, GRAFT_FLOAT32), 0);
  ConvolutionParameters strided = padded;
  strided.stride[1] = 2;
  EXPECT_EQ(chosen({2, 64, 56, 56, 64, 3, 3, strided}, GRAFT_FLOAT32), 0);
}

void check_turns(bool last) {
  const int64_t images = 5, channels = 16, side = 76, outs = 16;
  const int64_t each = channels * side * side;
  const auto x = numbers(images * each, 1), w = numbers(outs * channels * 49, 2);
  const auto lie = [&](int64_t c) { return strides(c, side, side, last); };
  DeviceTensor input({images, channels, side, side}, lie(channels), GRAFT_FLOAT32);
  DeviceTensor weight({outs, channels, 7, 7}, GRAFT_FLOAT32);
  DeviceTensor output({images, outs, side, side}, lie(outs), GRAFT_FLOAT32);
  input.set(x), weight.set(w);
  const ConvolutionParameters padded{{1, 1, 1}, {3, 3, 0}, {1, 1, 1}, 1, false};
  generated_convolution(stream(), GRAFT_CONVOLUTION_FORWARD, {input, weight, output}, nullptr,
                        padded);
  std::vector<double> expected;
  for (int64_t i = 0; i < images; ++i) {
    DeviceTensor image({1, channels, side, side}, lie(channels), GRAFT_FLOAT32);
    DeviceTensor single({1, outs, side, side}, lie(outs), GRAFT_FLOAT32);
    image.set({x.begin() + i * each, x.begin() + (i + 1) * each});
    generated_convolution(stream(), GRAFT_CONVOLUTION_FORWARD, {image, weight, single}, nullptr,
                          padded);
    const auto values = single.get();
    expected.insert(expected.end(), values.begin(), values.end());
  }
  EXPECT_TRUE(near(output.get(), expected, 0, 0));
}

TEST(Convolution, ManyImagesAreTakenInTurns) {
  check_turns(false);
  check_turns(true);
}

TEST(Convolution, BiasOfAnyStride) {
  DeviceTensor input({1, 2, 2, 3}, GRAFT_FLOAT32), weight({2, 2, 1, 1}, GRAFT_FLOAT32);
  DeviceTensor bias({2, 2}, GRAFT_FLOAT32), output({1, 2, 2, 3}, GRAFT_FLOAT32);
  input.set(std::vector<double>(12, 0)), weight.set({1, 2, 3, 4}), bias.set({5, 7, 9, 11});
  TensorView column = bias.view();
  column.rank = 1, column.sizes[0] = 2, column.strides[0] = 2;
  convolution(stream(), output, input, weight, &column, {});
  EXPECT_EQ(output.get(), (std::vector<double>{5, 5, 5, 5, 5, 5, 9, 9, 9, 9, 9, 9}));
}

// labels: opencl_cpu races torn_tables
TEST(Convolution, TransposedIsTheGradient) {
  const Case k = {2, 3, 8, 8, 4, 3, 3, {{2, 2, 1}, {1, 1, 0}, {1, 1, 1}, 1, false}};
  const auto g = numbers(k.outputs(), 3), w = numbers(k.weights(), 2), b = numbers(k.c, 5);
  std::vector<double> expected(static_cast<size_t>(k.inputs()));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = b[i / 64 % 3];
  each_product(k, [&](size_t i, size_t j, size_t o) { expected[i] += g[o] * w[j]; });
  DeviceTensor input({k.n, k.out, k.oh(), k.ow()}, GRAFT_FLOAT32), bias({k.c}, GRAFT_FLOAT32);
  DeviceTensor weight({k.out, k.c, 3, 3}, GRAFT_FLOAT32), output({2, 3, 8, 8}, GRAFT_FLOAT32);
  input.set(g), weight.set(w), bias.set(b);
  ConvolutionParameters parameters = k.p;
  parameters.transposed = true;
  convolution(stream(), output, input, weight, &bias.view(), parameters);
  EXPECT_TRUE(near(output.get(), expected, 1e-5, 1e-5));
}

// A library caps the results of such convolutions.
TEST(Convolution, BytesWrap) {
  for (const graft_dtype dtype : {GRAFT_INT8, GRAFT_UINT8}) {
    DeviceTensor x({1, 2, 3, 3}, dtype), w({1, 2, 2, 2}, dtype), y({1, 1, 2, 2}, dtype);
    const double sum = dtype == GRAFT_INT8 ? 8 * 169 - 5 * 256 : (8 * 169) % 256;
    x.set(std::vector<double>(18, 13)), w.set(std::vector<double>(8, 13));
    convolution(stream(), y, x, w, nullptr, {});
    EXPECT_TRUE(near(y.get(), std::vector<double>(4, sum), 0, 0)) << name_of(dtype);
  }
}

TEST(Convolution, OneAndThreeDimensions) {
  DeviceTensor x({1, 1, 5}, GRAFT_FLOAT32), w({1, 1, 3}, GRAFT_FLOAT32),
      y({1, 1, 3}, GRAFT_FLOAT32);
  x.set({1, 2, 3, 4, 5}), w.set({1, 0, -1});
  convolution(stream(), y, x, w, nullptr, {});
  EXPECT_TRUE(near(y.get(), {-2, -2, -2}, 1e-6, 1e-6));
  DeviceTensor a({1, 2, 2, 2, 2}, GRAFT_FLOAT32), b({1, 2, 2, 2, 2}, GRAFT_FLOAT32);
  DeviceTensor c({1, 1, 1, 1, 1}, GRAFT_FLOAT32);
  const auto p = numbers(16, 1), q = numbers(16, 2);
  a.set(p), b.set(q);
  convolution(stream(), c, a, b, nullptr, {});
  double sum = 0;
  for (size_t i = 0; i < 16; ++i) sum += p[i] * q[i];
  EXPECT_TRUE(near(c.get(), {sum}, 1e-5, 1e-5));
}

}  // namespace
