// tests/kernels/pointwise/pointwise_test.cpp: elementwise kernels over layouts, dtypes, scalars and
// aliases.
#include "kernels/pointwise/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
// labels of the file: opencl_cpu
namespace {

using test::DeviceTensor;
using test::near;
using test::numbers;
using test::stream;

const Op& op(const char* name) { return *find_op(name); }

void run(const char* name, const TensorView& output, std::vector<Operand> inputs,
         std::vector<Scalar> scalars = {}) {
  pointwise(stream(), op(name), output.dtype, {&output, 1}, inputs, scalars);
}

std::vector<double> sums(const std::vector<double>& a, const std::vector<double>& b,
                         graft_dtype dtype) {
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(test::rounded(a[i] + b[i], dtype));
  return result;
}

class Sizes : public testing::TestWithParam<int64_t> {};

TEST_P(Sizes, ContiguousSum) {
  const int64_t n = GetParam();
  const std::vector<double> x = numbers(n, 1, -2, 2, GRAFT_FLOAT32),
                            y = numbers(n, 2, -2, 2, GRAFT_FLOAT32);
  DeviceTensor a({n}, GRAFT_FLOAT32), b({n}, GRAFT_FLOAT32), out({n}, GRAFT_FLOAT32);
  run("plain_add", out, {a.set(x).view(), b.set(y).view()});
  EXPECT_EQ(out.get(), sums(x, y, GRAFT_FLOAT32));
}

INSTANTIATE_TEST_SUITE_P(Pointwise, Sizes,
                         testing::Values(1, 2, 15, 16, 17, 1000, 16383, 16384, 16385, 32768, 32769,
                                         100000));

TEST(Pointwise, BroadcastsAnywhere) {
  const std::vector<double> x = numbers(4 * 5 * 6, 1, -2, 2, GRAFT_FLOAT32);
  for (const std::vector<int64_t>& strides : std::vector<std::vector<int64_t>>{
           {0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {6, 0, 1}, {0, 6, 1}, {5, 1, 0}}) {
    DeviceTensor a({4, 5, 6}, GRAFT_FLOAT32), b({4 * 5 * 6}, GRAFT_FLOAT32),
        out({4, 5, 6}, GRAFT_FLOAT32);
    const std::vector<double> y = numbers(4 * 5 * 6, 2, -2, 2, GRAFT_FLOAT32);
    a.set(x), b.set(y);
    run("mul", out, {a.view(), b.as({4, 5, 6}, strides)});
    std::vector<double> expected;
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        for (int64_t k = 0; k < 6; ++k) {
          const int64_t at = i * strides[0] + j * strides[1] + k * strides[2];
          expected.push_back(
              test::rounded(x[static_cast<size_t>(i * 30 + j * 6 + k)] * y[static_cast<size_t>(at)],
                            GRAFT_FLOAT32));
        }
      }
    }
    EXPECT_EQ(out.get(), expected);
  }
}

TEST(Pointwise, TakesAnyStridesOfSixDimensions) {
  const std::vector<int64_t> sizes = {2, 3, 2, 4, 3, 5};
  const int64_t count = 2 * 3 * 2 * 4 * 3 * 5;
  const std::vector<double> x = numbers(count, 1, -2, 2, GRAFT_FLOAT32),
                            y = numbers(count, 2, -2, 2, GRAFT_FLOAT32);
  DeviceTensor a(sizes, {361, 1, 90, 3, 30, 12}, GRAFT_FLOAT32);
  DeviceTensor b(sizes, {1, 2, 360, 18, 6, 72}, GRAFT_FLOAT32), out(sizes, GRAFT_FLOAT32);
  DeviceTensor strided(sizes, {2, 4, 720, 36, 12, 144}, GRAFT_FLOAT32);
  a.set(x), b.set(y);
  const std::vector<double> stored_a = a.get(), stored_b = b.get();
  run("plain_add", out, {a.view(), b.view()});
  EXPECT_EQ(out.get(), sums(stored_a, stored_b, GRAFT_FLOAT32));
  run("plain_add", strided, {a.view(), b.view()});
  EXPECT_EQ(strided.get(), sums(stored_a, stored_b, GRAFT_FLOAT32));
}

TEST(Pointwise, LongRowsAreSharedByWorkItems) {
  const int64_t rows = 3, n = 50001;
  const std::vector<double> x = numbers(rows * n, 1, -2, 2, GRAFT_FLOAT32),
                            y = numbers(n, 2, -2, 2, GRAFT_FLOAT32);
  DeviceTensor a({rows, n}, GRAFT_FLOAT32), b({n}, GRAFT_FLOAT32), out({rows, n}, GRAFT_FLOAT32);
  a.set(x), b.set(y);
  run("plain_add", out, {a.view(), b.as({rows, n}, {0, 1})});
  std::vector<double> expected;
  for (size_t i = 0; i < x.size(); ++i) {
    expected.push_back(test::rounded(x[i] + y[i % static_cast<size_t>(n)], GRAFT_FLOAT32));
  }
  EXPECT_EQ(out.get(), expected);
}

// labels: races
TEST(Pointwise, WorksInPlace) {
  for (int64_t n : {7, 40000}) {
    const std::vector<double> x = numbers(n, 1, -2, 2, GRAFT_FLOAT32);
    DeviceTensor a({n}, GRAFT_FLOAT32);
    a.set(x);
    run("plain_add", a, {a.view(), a.view()});
    EXPECT_EQ(a.get(), sums(x, x, GRAFT_FLOAT32));
  }
}

TEST(Pointwise, MixesStoredTypes) {
  const std::vector<double> x = {1, -2, 3, 100}, y = {0.5, 0.25, -8, 1};
  DeviceTensor a({4}, GRAFT_INT32), b({4}, GRAFT_BFLOAT16), out({4}, GRAFT_FLOAT16);
  a.set(x), b.set(y);
  pointwise(stream(), op("plain_add"), GRAFT_FLOAT32, std::vector<TensorView>{out},
            std::vector<Operand>{a.view(), b.view()});
  EXPECT_EQ(out.get(), (std::vector<double>{1.5, -1.75, -5, 101}));
}

TEST(Pointwise, RoundsHalfTypesToNearestEven) {
  const std::vector<double> x = {1.00390625, 1.01171875, 1e30, -0.0, 1e-40, 3.3895314e38};
  DeviceTensor in({6}, GRAFT_FLOAT32), out({6}, GRAFT_BFLOAT16);
  in.set(x);
  pointwise(stream(), op("positive"), GRAFT_FLOAT32, std::vector<TensorView>{out},
            std::vector<Operand>{in.view()});
  std::vector<double> expected;
  for (double value : in.get()) expected.push_back(test::rounded(value, GRAFT_BFLOAT16));
  EXPECT_EQ(out.get(), expected);
}

TEST(Pointwise, RowsOfHalvesBeginAnywhere) {
  constexpr int64_t kRows = 5, kColumns = 85, kStride = 87;
  for (graft_dtype dtype : {GRAFT_FLOAT16, GRAFT_BFLOAT16}) {
    const std::vector<double> x = numbers(kRows, 1, -2, 2, dtype);
    const std::vector<double> y = numbers(kRows * kStride, 2, -2, 2, dtype);
    DeviceTensor a({kRows}, dtype), b({kRows * kStride}, dtype), out({kRows, kColumns}, dtype);
    a.set(x), b.set(y);
    const TensorView repeated = a.as({kRows, kColumns}, {1, 0});
    run("mul", out, {repeated, b.as({kRows, kColumns}, {kStride, 1})});
    std::vector<double> products, halves;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t k = 0; k < kColumns; ++k) {
        products.push_back(test::rounded(x[i] * y[i * kStride + k], dtype));
        halves.push_back(test::rounded(x[i] / 2, dtype));
      }
    }
    EXPECT_EQ(out.get(), products);
    run("div", out, {repeated, Scalar::of(2.0)});
    EXPECT_EQ(out.get(), halves);
  }
}

TEST(Pointwise, TakesScalarsOfAnyType) {
  DeviceTensor a({3}, GRAFT_FLOAT32), out({3}, GRAFT_FLOAT32);
  a.set({1, 2, 3});
  run("add", out, {a.view(), Scalar::of<int64_t>(10)}, {Scalar::of(0.5)});
  EXPECT_EQ(out.get(), (std::vector<double>{6, 7, 8}));
  DeviceTensor mask({3}, GRAFT_BOOL);
  pointwise(stream(), op("lt"), GRAFT_FLOAT32, std::vector<TensorView>{mask},
            std::vector<Operand>{a.view(), Scalar::of(2.0)});
  EXPECT_EQ(mask.get(), (std::vector<double>{1, 0, 0}));
  run("where", out, {mask.view(), a.view(), Scalar::of(-1.0f)});
  EXPECT_EQ(out.get(), (std::vector<double>{1, -1, -1}));
}

TEST(Pointwise, WritesSeveralOutputs) {
  DeviceTensor x({2}, GRAFT_FLOAT32), weight({2}, GRAFT_FLOAT32), g({2}, GRAFT_FLOAT32);
  x.set({1, -2}), weight.set({4, 8}), g.set({3, 5});
  const std::vector<TensorView> outputs = {x, weight};
  const std::vector<Operand> inputs = {x.view(), weight.view(), g.view()};
  pointwise(stream(), op("prelu_backward"), GRAFT_FLOAT32, outputs, inputs);
  EXPECT_EQ(x.get(), (std::vector<double>{3, 40}));
  EXPECT_EQ(weight.get(), (std::vector<double>{0, -10}));
}

TEST(Pointwise, ComputesComplexNumbers) {
  // A complex tensor as the pairs of a real one.
  DeviceTensor a({4}, GRAFT_FLOAT32), b({4}, GRAFT_FLOAT32), out({4}, GRAFT_FLOAT32);
  a.set({1, 2, 3, -4}), b.set({0.5, 1, -2, 2});
  const auto complex = [](const DeviceTensor& pairs) {
    TensorView view = pairs.as({2}, {1});
    view.dtype = GRAFT_COMPLEX64;
    return view;
  };
  run("mul", complex(out), {complex(a), complex(b)});
  EXPECT_EQ(out.get(), (std::vector<double>{-1.5, 2, 2, 14}));
  run("div", complex(out), {complex(a), complex(b)});
  EXPECT_TRUE(near(out.get(), {2, 0, -1.75, 0.25}, 1e-6, 1e-6));
  TensorView length = out.as({2}, {1});
  pointwise(stream(), op("abs"), GRAFT_COMPLEX64, {&length, 1}, std::vector<Operand>{complex(a)});
  EXPECT_TRUE(near({out.get()[0], out.get()[1]}, {std::sqrt(5.0), 5}, 1e-6, 1e-6));
}

TEST(Pointwise, NaNSurvives) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  DeviceTensor a({4}, GRAFT_FLOAT32), b({4}, GRAFT_FLOAT32), out({4}, GRAFT_FLOAT32);
  a.set({nan, 1, inf, -inf}), b.set({1, nan, -inf, nan});
  run("maximum", out, {a.view(), b.view()});
  EXPECT_TRUE(near(out.get(), {nan, nan, inf, nan}, 0, 0));
  run("clamp_scalar", out, {a.view()}, {Scalar::of(-1.0), Scalar::of(1.0)});
  EXPECT_TRUE(near(out.get(), {nan, 1, 1, -1}, 0, 0));
}

TEST(Pointwise, RoundsToTheHalfTypeItComputesIn) {
  for (const graft_dtype half : {GRAFT_FLOAT16, GRAFT_BFLOAT16}) {
    const std::vector<double> x = numbers(300, 1, -2, 2, half), y = numbers(300, 2, -2, 2, half);
    DeviceTensor a({300}, half), b({300}, half), narrow({300}, half);
    a.set(x), b.set(y);
    run("mul", narrow, {a.view(), b.view()});
    for (const graft_dtype wide : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
      DeviceTensor out({300}, wide);
      const Operand inputs[] = {a.view(), b.view()};
      pointwise(stream(), op("mul"), half, {&out.view(), 1}, inputs);
      EXPECT_EQ(out.get(), narrow.get()) << name_of(half) << name_of(wide);
      pointwise(stream(), op("lt"), half, {&out.view(), 1}, inputs);
      EXPECT_EQ(out.get()[0], x[0] < y[0]);
    }
  }
  DeviceTensor large({2}, GRAFT_FLOAT16), out({2}, GRAFT_FLOAT32);
  const Operand inputs[] = {large.set({33000, -6e-8}).view(), large.view()};
  pointwise(stream(), op("plain_add"), GRAFT_FLOAT16, {&out.view(), 1}, inputs);
  EXPECT_TRUE(near(out.get(), {std::numeric_limits<double>::infinity(), -0x1p-23}, 0, 0));
}

TEST(Pointwise, EmptyTensorsLaunchNothing) {
  DeviceTensor a({1}, GRAFT_FLOAT32);
  const TensorView empty = a.as({3, 0}, {1, 1});
  run("neg", empty, {empty});
}

TEST(Pointwise, SaysWhatIsWrong) {
  DeviceTensor a({2}, GRAFT_FLOAT32);
  const auto status_of = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      return error.status();
    }
    return GRAFT_OK;
  };
  EXPECT_EQ(status_of([&] { run("plain_add", a, {a.view()}); }), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { run("bitwise_not", a, {a.view()}); }), GRAFT_UNSUPPORTED);
}

}  // namespace
}  // namespace graft
