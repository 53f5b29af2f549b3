// tests/kernels/pointwise/small_integers_test.cpp: products and convolutions of bytes, summed in
// int32: exact.
#include <cmath>

#include "kernels/convolution/convolution.h"
#include "kernels/matmul/kernel.h"
#include "kernels/matmul/matmul.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Product = void (*)(Stream&, const TensorView&, const TensorView&, const TensorView&,
                         const MatmulEpilogue&);

// Whole numbers over the dtype's range, its ends among them.
std::vector<double> integers(int64_t count, unsigned seed, graft_dtype dtype) {
  const double low = dtype == GRAFT_UINT8 ? 0 : dtype == GRAFT_INT8 ? -128 : -255;
  const double high = dtype == GRAFT_INT8 ? 127 : 255;
  std::vector<double> values = numbers(count, seed, low, high + 1);
  for (double& value : values) value = std::floor(value);
  values.front() = low;
  values.back() = high;
  return values;
}

class SmallProduct : public ::testing::TestWithParam<Product> {
 protected:
  void check(graft_dtype left, graft_dtype right, int64_t m, int64_t k, int64_t n, bool turned) {
    SCOPED_TRACE(std::string(name_of(left)) + " by " + name_of(right) + " " + std::to_string(m) +
                 " " + std::to_string(k) + " " + std::to_string(n) + (turned ? " b^T" : ""));
    const auto x = integers(m * k, 1, left), y = integers(k * n, 2, right);
    const auto z = integers(n, 3, GRAFT_INT16);
    DeviceTensor a({m, k}, left), c({m, n}, GRAFT_INT32), row({1, n}, GRAFT_INT32);
    const std::vector<int64_t> strides =
        turned ? std::vector<int64_t>{1, k} : std::vector<int64_t>{n, 1};
    DeviceTensor b({k, n}, strides, right);
    a.set(x), b.set(y), row.set(z);
    std::vector<double> expected(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m * n; ++i) {
      for (int64_t p = 0; p < k; ++p) {
        expected[static_cast<size_t>(i)] +=
            x[static_cast<size_t>(i / n * k + p)] * y[static_cast<size_t>(p * n + i % n)];
      }
    }
    GetParam()(stream(), c, a, b, {});
    EXPECT_TRUE(near(c.get(), expected, 0, 0));
    const TensorView offsets = row.spread(c, {0});
    GetParam()(stream(), c, a, b, {1.0, 1.0, &offsets, false});
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += z[i % static_cast<size_t>(n)];
    EXPECT_TRUE(near(c.get(), expected, 0, 0));
  }
};

TEST_P(SmallProduct, IsExact) {
  const int64_t shapes[][3] = {{1, 1, 1}, {3, 7, 5}, {17, 64, 33}, {1, 300, 64}, {64, 1100, 2}};
  for (const auto& s : shapes) {
    for (const bool turned : {false, true}) {
      check(GRAFT_UINT8, GRAFT_INT8, s[0], s[1], s[2], turned);
      check(GRAFT_INT8, GRAFT_INT8, s[0], s[1], s[2], turned);
      check(GRAFT_UINT8, GRAFT_INT16, s[0], s[1], s[2], turned);
    }
    check(GRAFT_INT16, GRAFT_INT8, s[0], s[1], s[2], false);
  }
}

TEST_P(SmallProduct, OfNothingIsTheAddend) {
  DeviceTensor a({2, 0}, GRAFT_UINT8), b({0, 3}, GRAFT_INT8), c({2, 3}, GRAFT_INT32);
  DeviceTensor row({1, 3}, GRAFT_INT32);
  row.set({1, -2, 300});
  const TensorView offsets = row.spread(c, {0});
  GetParam()(stream(), c, a, b, {1.0, 1.0, &offsets, false});
  EXPECT_TRUE(near(c.get(), {1, -2, 300, 1, -2, 300}, 0, 0));
}

INSTANTIATE_TEST_SUITE_P(LibraryOrKernel, SmallProduct,
                         ::testing::Values(&matmul, &generated_matmul));

TEST(SmallProductArguments, AreChecked) {
  DeviceTensor a({2, 3}, GRAFT_UINT8), b({3, 2}, GRAFT_INT8), sums({2, 2}, GRAFT_INT64);
  EXPECT_THROW(matmul(stream(), sums, a, b), Error);
  DeviceTensor unsigned_right({3, 2}, GRAFT_UINT8), c({2, 2}, GRAFT_INT32);
  EXPECT_THROW(matmul(stream(), c, a, unsigned_right), Error);
}

struct Shape {
  graft_dtype input, weight;
  int64_t channels, outs, groups, size, kernel, stride, padding, dilation;
  int64_t result() const { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
};

// Two images of two spatial dimensions; adds(input, weight, output) for every product.
template <class Adds>
void each_product(const Shape& s, Adds adds) {
  const int64_t in = s.channels / s.groups, out = s.outs / s.groups, o = s.result();
  for (int64_t i = 0; i < 2 * s.outs * o * o; ++i) {
    const int64_t x = i % o, y = i / o % o, channel = i / (o * o) % s.outs;
    const int64_t image = i / (o * o * s.outs);
    for (int64_t j = 0; j < in * s.kernel * s.kernel; ++j) {
      const int64_t kx = j % s.kernel, ky = j / s.kernel % s.kernel, c = j / (s.kernel * s.kernel);
      const int64_t ix = x * s.stride - s.padding + kx * s.dilation;
      const int64_t iy = y * s.stride - s.padding + ky * s.dilation;
      if (ix < 0 || iy < 0 || ix >= s.size || iy >= s.size) continue;
      const int64_t from = image * s.channels + channel / out * in + c;
      adds(static_cast<size_t>((from * s.size + iy) * s.size + ix),
           static_cast<size_t>(channel * in * s.kernel * s.kernel + j), static_cast<size_t>(i));
    }
  }
}

void check(const Shape& s, bool channels_last, bool generated) {
  SCOPED_TRACE(std::string(name_of(s.input)) + " " + name_of(s.weight) + " kernel " +
               std::to_string(s.kernel) + (channels_last ? " channels last" : "") +
               (generated ? " generated" : ""));
  const int64_t in = s.channels / s.groups, o = s.result(), size = s.size;
  const std::vector<int64_t> image{2, s.channels, size, size}, result{2, s.outs, o, o};
  const std::vector<int64_t> last{s.channels * size * size, 1, size * s.channels, s.channels};
  const std::vector<int64_t> first{s.channels * size * size, size * size, size, 1};
  DeviceTensor input(image, channels_last ? last : first, s.input);
  DeviceTensor weight({s.outs, in, s.kernel, s.kernel}, s.weight);
  DeviceTensor bias({s.outs}, GRAFT_INT32), output(result, GRAFT_INT32);
  const auto x = integers(2 * s.channels * size * size, 1, s.input);
  const auto w = integers(s.outs * in * s.kernel * s.kernel, 2, s.weight);
  const auto b = integers(s.outs, 3, GRAFT_INT16);
  std::vector<double> expected(static_cast<size_t>(2 * s.outs * o * o));
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = b[i / static_cast<size_t>(o * o) % static_cast<size_t>(s.outs)];
  }
  each_product(s, [&](size_t i, size_t j, size_t to) { expected[to] += x[i] * w[j]; });
  input.set(x), weight.set(w), bias.set(b);
  ConvolutionParameters p;
  for (int d = 0; d < 2; ++d) {
    p.stride[d] = s.stride, p.padding[d] = s.padding, p.dilation[d] = s.dilation;
  }
  p.groups = s.groups;
  if (generated) {
    generated_convolution(stream(), GRAFT_CONVOLUTION_FORWARD, {input, weight, output},
                          &bias.view(), p);
  } else {
    convolution(stream(), output, input, weight, &bias.view(), p);
  }
  EXPECT_TRUE(near(output.get(), expected, 0, 0));
}

TEST(SmallConvolution, IsExact) {
  const Shape shapes[] = {{GRAFT_UINT8, GRAFT_INT8, 3, 5, 1, 7, 3, 1, 0, 1},
                          {GRAFT_UINT8, GRAFT_INT8, 16, 16, 1, 6, 3, 2, 1, 1},
                          {GRAFT_INT8, GRAFT_INT8, 4, 6, 2, 9, 3, 1, 2, 2},
                          {GRAFT_UINT8, GRAFT_INT8, 8, 8, 8, 5, 3, 1, 1, 1},
                          {GRAFT_UINT8, GRAFT_INT8, 32, 9, 1, 4, 1, 1, 0, 1},
                          {GRAFT_INT16, GRAFT_INT8, 4, 6, 1, 5, 3, 1, 1, 1},
                          {GRAFT_UINT8, GRAFT_INT16, 4, 6, 1, 5, 3, 1, 1, 1}};
  for (const Shape& shape : shapes) {
    for (const bool channels_last : {false, true}) {
      for (const bool generated : {false, true}) check(shape, channels_last, generated);
    }
  }
}

}  // namespace
