// tests/codegen/math/math_test.cpp: every mathematical function against the C library in float64.
#include "codegen/math/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/ir/builder.h"
#include "tests/codegen/compiled.h"

namespace graft::ir {
namespace {

Kernel apply(Math function) {
  Builder b(std::string("apply_") + name_of(function));
  const Address out = b.write(GRAFT_FLOAT32), x = b.read(GRAFT_FLOAT32), y = b.read(GRAFT_FLOAT32);
  const Value count = b.index();
  b.vector_loop(b.i64(0), count, [&](Value i) {
    const Value second = arity_of(function) > 1 ? y.load(i) : Value();
    out.store(i, math(function, x.load(i), second));
  });
  return b.finish();
}

std::vector<float> run(Math function, const std::vector<float>& x, const std::vector<float>& y) {
  const Compiled kernel(apply(function));
  std::vector<float> out(x.size());
  graft_kernel_argument arguments[4];
  arguments[0].address = out.data();
  arguments[1].address = const_cast<float*>(x.data());
  arguments[2].address = const_cast<float*>(y.data());
  arguments[3].bits = x.size();
  kernel(arguments);
  return out;
}

// Distance in units of the last place of the exact result.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  const double unit =
      std::max(std::ldexp(1.0, std::ilogb(exact == 0 ? 1e-45 : exact) - 23), std::ldexp(1.0, -149));
  return std::abs(static_cast<double>(got) - exact) / unit;
}

// Float32 numbers spread evenly over all bit patterns, so over all exponents, signs and specials.
std::vector<float> all_kinds(uint32_t step) {
  std::vector<float> numbers;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (float special : {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 2.0f, 10.0f, infinity, -infinity,
                        std::nanf(""), 1e-45f, 1.17549435e-38f, 88.72f, 88.73f, -103.9f, -87.4f}) {
    numbers.push_back(special);
  }
  return numbers;
}

struct Case {
  Math function;
  double (*exact)(double x);
  double bound;
};

const Case kCases[] = {
    {Math::k_exp, [](double x) { return x < -87.3365447 ? 0 : std::exp(x); }, 1.5},
    {Math::k_exp2, [](double x) { return std::exp2(x); }, 1.0},
    {Math::k_expm1, [](double x) { return std::expm1(x); }, 2.0},
    {Math::k_log, [](double x) { return std::log(x); }, 1.0},
    {Math::k_log2, [](double x) { return std::log2(x); }, 1.0},
    {Math::k_log10, [](double x) { return std::log10(x); }, 1.0},
    {Math::k_log1p, [](double x) { return std::log1p(x); }, 2.0},
    {Math::k_sin, [](double x) { return std::sin(x); }, 1.5},
    {Math::k_cos, [](double x) { return std::cos(x); }, 1.5},
    {Math::k_tan, [](double x) { return std::tan(x); }, 1.0},
    {Math::k_asin, [](double x) { return std::asin(x); }, 1.0},
    {Math::k_acos, [](double x) { return std::acos(x); }, 1.0},
    {Math::k_atan, [](double x) { return std::atan(x); }, 1.0},
    {Math::k_sinh, [](double x) { return std::sinh(x); }, 1.0},
    {Math::k_cosh, [](double x) { return std::cosh(x); }, 1.0},
    {Math::k_tanh, [](double x) { return std::tanh(x); }, 3.0},
    {Math::k_asinh, [](double x) { return std::asinh(x); }, 1.0},
    {Math::k_acosh, [](double x) { return std::acosh(x); }, 1.0},
    {Math::k_atanh, [](double x) { return std::atanh(x); }, 1.0},
    {Math::k_erf, [](double x) { return std::erf(x); }, 3.0},
    {Math::k_erfc, [](double x) { return std::erfc(x); }, 1.0},
};

class UnaryMath : public testing::TestWithParam<Case> {};

TEST_P(UnaryMath, StaysWithinItsBound) {
  const Case& test = GetParam();
  const std::vector<float> x = all_kinds(4093);
  const std::vector<float> got = run(test.function, x, x);
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(got[i], test.exact(x[i]));
    if (error > worst) worst = error, where = x[i];
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, test.bound) << "at " << where;
}

TEST_P(UnaryMath, KeepsTheSignOfZero) {
  const Case& test = GetParam();
  const std::vector<float> x = {0.0f, -0.0f};
  const std::vector<float> got = run(test.function, x, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = test.exact(x[i]);
    if (exact != 0) continue;
    EXPECT_EQ(std::signbit(got[i]), std::signbit(exact)) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnaryMath, testing::ValuesIn(kCases), [](const auto& info) {
  return std::string(name_of(info.param.function));
});

void expect_binary(Math function, double (*exact)(double, double), double bound) {
  std::vector<float> x, y;
  const std::vector<float> numbers = all_kinds(5000011);
  for (float a : numbers) {
    for (float b : numbers) x.push_back(a), y.push_back(b);
  }
  // Where powers are neither 0 nor infinite.
  for (int i = 0; i < 100000; ++i) {
    x.push_back(0.001f + static_cast<float>(i % 997) * 0.37f);
    y.push_back(static_cast<float>(i % 1009) * 0.021f - 10.0f);
    x.push_back(-static_cast<float>(i % 89));
    y.push_back(static_cast<float>(i % 41) - 20.0f);
  }
  const std::vector<float> got = run(function, x, y);
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(got[i], exact(x[i], y[i]));
    if (error > worst) worst = error, where = i;
  }
  EXPECT_LE(worst, bound) << "at " << x[where] << ", " << y[where] << ": " << got[where];
}

TEST(BinaryMath, Pow) {
  expect_binary(
      Math::k_pow, [](double x, double y) { return std::pow(x, y); }, 1.0);
}
TEST(BinaryMath, Atan2) {
  expect_binary(
      Math::k_atan2, [](double y, double x) { return std::atan2(y, x); }, 1.0);
}
TEST(BinaryMath, Hypot) {
  expect_binary(
      Math::k_hypot, [](double x, double y) { return std::hypot(x, y); }, 1.0);
}
TEST(BinaryMath, Fmod) {
  expect_binary(
      Math::k_fmod, [](double x, double y) { return std::fmod(x, y); }, 0.0);
}

TEST(Lgamma, StaysWithinItsBound) {
  std::vector<float> x = all_kinds(4093);
  for (int i = -20000; i < 60000; ++i) x.push_back(static_cast<float>(i) / 1999);
  const std::vector<float> got = run(Math::k_lgamma, x, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::lgamma(static_cast<double>(x[i]));
    const bool near_root = x[i] < 0 && std::abs(got[i] - exact) <= 1e-11;
    EXPECT_TRUE(near_root || ulps(got[i], exact) <= 1) << x[i] << ": " << got[i];
  }
}

TEST(Digamma, MatchesKnownValues) {
  const double gamma = 0.57721566490153286;
  const std::vector<float> x = {1.0f, 0.5f, 2.0f, 10.0f, -0.5f, 100.0f};
  const double exact[] = {-gamma,
                          -gamma - 2 * std::log(2.0),
                          1 - gamma,
                          2.25175258906672111,
                          0.03648997397857652,
                          4.60016185273808875};
  const std::vector<float> got = run(Math::k_digamma, x, x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], exact[i], 1e-6) << x[i];
}

}  // namespace
}  // namespace graft::ir
