// tests/kernels/reduce/reduce_test.cpp: reductions against sums in double on the host.
#include "kernels/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

const double kInf = std::numeric_limits<double>::infinity();

double neutral(Reduction reduction) {
  switch (reduction) {
    case Reduction::kProd:
    case Reduction::kAll:
      return 1;
    case Reduction::kMax:
      return -kInf;
    case Reduction::kMin:
    case Reduction::kNormNegInf:
      return kInf;
    default:
      return 0;
  }
}

double step(Reduction reduction, double a, double x, double p) {
  switch (reduction) {
    case Reduction::kProd:
      return a * x;
    case Reduction::kMax:
      return std::isnan(a) || a > x ? a : x;
    case Reduction::kMin:
      return std::isnan(a) || a < x ? a : x;
    case Reduction::kAny:
      return a != 0 || x != 0;
    case Reduction::kAll:
      return a != 0 && x != 0;
    case Reduction::kCountNonzero:
    case Reduction::kNorm0:
      return a + (x != 0);
    case Reduction::kNorm1:
      return a + std::abs(x);
    case Reduction::kNorm2:
      return a + x * x;
    case Reduction::kNormInf:
      return std::max(a, std::abs(x));
    case Reduction::kNormNegInf:
      return std::min(a, std::abs(x));
    case Reduction::kNormP:
      return a + std::pow(std::abs(x), p);
    case Reduction::kLogSumExp:
      return a + std::exp(x);
    case Reduction::kNansum:
      return a + (std::isnan(x) ? 0 : x);
    default:
      return a + x;
  }
}

double last(Reduction reduction, double a, double n, double p) {
  switch (reduction) {
    case Reduction::kMean:
      return a / n;
    case Reduction::kNorm2:
      return std::sqrt(a);
    case Reduction::kNormP:
      return std::pow(a, 1 / p);
    case Reduction::kLogSumExp:
      return std::log(a);
    default:
      return a;
  }
}

// Reduces the middle of [outer, n, inner].
std::vector<double> expect(Reduction reduction, const std::vector<double>& x, int64_t outer,
                           int64_t n, int64_t inner, double p = 2) {
  std::vector<double> result;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double a = neutral(reduction);
      for (int64_t j = 0; j < n; ++j) {
        a = step(reduction, a, x[static_cast<size_t>((o * n + j) * inner + i)], p);
      }
      result.push_back(last(reduction, a, static_cast<double>(n), p));
    }
  }
  return result;
}

void check(Reduction reduction, graft_dtype in, graft_dtype out, int64_t outer, int64_t n,
           int64_t inner, double low = -2, double high = 2) {
  SCOPED_TRACE(std::string(name_of(in)) + " " + std::to_string(static_cast<int>(reduction)) + " [" +
               std::to_string(outer) + ", " + std::to_string(n) + ", " + std::to_string(inner) +
               "]");
  DeviceTensor input({outer, n, inner}, in);
  const auto x = numbers(outer * n * inner, 7, low, high, in);
  input.set(x);
  DeviceTensor output({outer, 1, inner}, out);
  reduce(stream(), reduction, output.spread(input, {1}), input, 3.0);
  auto expected = expect(reduction, x, outer, n, inner, 3.0);
  for (double& e : expected) e = rounded(e, out);
  const double t = tolerance(out);
  EXPECT_TRUE(near(output.get(), expected, t, t * std::sqrt(static_cast<double>(n))));
}

TEST(Reduce, SumsEveryDtypeOverEveryShape) {
  const int64_t shapes[][3] = {{1, 1, 1},    {3, 1, 5},   {1, 1000003, 1}, {7, 129, 1},
                               {1, 57, 300}, {5, 33, 17}, {2, 4099, 3},    {1, 5000, 64}};
  for (auto& s : shapes) {
    check(Reduction::kSum, GRAFT_FLOAT32, GRAFT_FLOAT32, s[0], s[1], s[2]);
    check(Reduction::kSum, GRAFT_FLOAT64, GRAFT_FLOAT64, s[0], s[1], s[2]);
    check(Reduction::kSum, GRAFT_INT32, GRAFT_INT64, s[0], s[1], s[2], -9, 9);
  }
  check(Reduction::kSum, GRAFT_BFLOAT16, GRAFT_BFLOAT16, 7, 129, 5);
  check(Reduction::kSum, GRAFT_FLOAT16, GRAFT_FLOAT32, 7, 129, 1);
  check(Reduction::kSum, GRAFT_BOOL, GRAFT_INT64, 7, 129, 1, 0, 1.9);
}

TEST(Reduce, EveryKindOverLinesColumnsAndEverything) {
  for (auto reduction :
       {Reduction::kMean, Reduction::kMax, Reduction::kMin, Reduction::kAny, Reduction::kAll,
        Reduction::kCountNonzero, Reduction::kNorm0, Reduction::kNorm1, Reduction::kNorm2,
        Reduction::kNormInf, Reduction::kNormNegInf, Reduction::kNormP, Reduction::kLogSumExp,
        Reduction::kNansum}) {
    const bool logical = reduction == Reduction::kAny || reduction == Reduction::kAll;
    const graft_dtype out = logical ? GRAFT_BOOL : GRAFT_FLOAT32;
    check(reduction, GRAFT_FLOAT32, out, 4, 77, 1);
    check(reduction, GRAFT_FLOAT32, out, 2, 77, 35);
    check(reduction, GRAFT_FLOAT32, out, 1, 40000, 1);
  }
  check(Reduction::kProd, GRAFT_FLOAT32, GRAFT_FLOAT32, 3, 20, 1, 0.5, 1.5);
  check(Reduction::kProd, GRAFT_INT64, GRAFT_INT64, 3, 9, 4, -3, 3);
  check(Reduction::kMax, GRAFT_INT64, GRAFT_INT64, 3, 700, 1, -1e15, 1e15);
  check(Reduction::kAny, GRAFT_BOOL, GRAFT_BOOL, 3, 70, 1, 0, 1.9);
}

// labels: sub_groups_8
TEST(Reduce, NanAndInfinitySurvive) {
  std::vector<double> x = numbers(300, 3);
  x[17] = NAN;
  x[120] = kInf;
  DeviceTensor input({3, 100}, GRAFT_FLOAT32);
  input.set(x);
  for (auto reduction : {Reduction::kMax, Reduction::kMin, Reduction::kSum}) {
    DeviceTensor output({3, 1}, GRAFT_FLOAT32);
    reduce(stream(), reduction, output.spread(input, {1}), input);
    const auto y = output.get();
    EXPECT_TRUE(std::isnan(y[0]));
    if (reduction != Reduction::kMin) {
      EXPECT_EQ(y[1], kInf);
    }
    EXPECT_TRUE(std::isfinite(y[2]));
  }
}

// labels: sub_groups_32
TEST(Reduce, SeveralDimensionsAndStrides) {
  // [n, c, h, w] summed over n, h, w in both layouts, and over two dimensions that do not touch.
  const auto x = numbers(4 * 5 * 6 * 7, 11, -2, 2, GRAFT_FLOAT32);
  std::vector<double> expected(5);
  for (size_t i = 0; i < x.size(); ++i) expected[i / 42 % 5] += x[i];
  DeviceTensor rows({4, 5, 6, 7}, GRAFT_FLOAT32);
  DeviceTensor last({4, 5, 6, 7}, {210, 1, 35, 5}, GRAFT_FLOAT32);
  for (DeviceTensor* input : {&rows, &last}) {
    input->set(x);
    DeviceTensor output({1, 5, 1, 1}, GRAFT_FLOAT32);
    reduce(stream(), Reduction::kSum, output.spread(*input, {0, 2, 3}), *input);
    EXPECT_TRUE(near(output.get(), expected, 1e-5, 1e-5));
  }
  DeviceTensor small({2, 3, 2, 3, 2}, {64, 20, 9, 3, 1}, GRAFT_FLOAT32);
  const auto y = numbers(72, 5, -2, 2, GRAFT_FLOAT32);
  small.set(y);
  DeviceTensor output({1, 3, 1, 3, 1}, GRAFT_FLOAT32);
  std::vector<double> sums(9);
  for (size_t i = 0; i < 72; ++i) sums[i / 12 % 3 * 3 + i / 2 % 3] += y[i];
  reduce(stream(), Reduction::kSum, output.spread(small, {0, 2, 4}), small);
  EXPECT_TRUE(near(output.get(), sums, 1e-5, 1e-5));
}

TEST(Reduce, NothingGivesTheNeutralElement) {
  DeviceTensor input({3, 0}, GRAFT_FLOAT32);
  DeviceTensor output({3, 1}, GRAFT_FLOAT32);
  reduce(stream(), Reduction::kSum, output.spread(input, {1}), input);
  EXPECT_TRUE(near(output.get(), {0, 0, 0}, 0, 0));
  reduce(stream(), Reduction::kProd, output.spread(input, {1}), input);
  EXPECT_TRUE(near(output.get(), {1, 1, 1}, 0, 0));
  reduce(stream(), Reduction::kMean, output.spread(input, {1}), input);
  EXPECT_TRUE(std::isnan(output.get()[0]));
  EXPECT_THROW(reduce(stream(), Reduction::kMax, output.spread(input, {1}), input), Error);
}

TEST(Reduce, DoesNotDependOnHowWorkIsSplit) {
  DeviceTensor input({300000}, GRAFT_FLOAT32);
  input.set(numbers(300000, 2));
  DeviceTensor output({1}, GRAFT_FLOAT32);
  reduce(stream(), Reduction::kSum, output.spread(input, {0}), input);
  const double first = output.get()[0];
  for (int i = 0; i < 5; ++i) {
    reduce(stream(), Reduction::kSum, output.spread(input, {0}), input);
    EXPECT_EQ(output.get()[0], first);
  }
}

}  // namespace
