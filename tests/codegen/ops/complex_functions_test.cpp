// tests/codegen/ops/complex_functions_test.cpp: complex functions against std::complex in float64.
#include "codegen/ops/complex_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "tests/codegen/compiled.h"

namespace graft {
namespace {

using Number = std::complex<double>;

struct Case {
  const char* name;
  ComplexValue (*function)(ComplexValue);
  Number (*exact)(const Number&);
};

Number sinc(const Number& z) {
  const Number angle = z * std::numbers::pi;
  return z == 0.0 ? 1.0 : std::sin(angle) / angle;
}
ComplexValue power_of_itself(ComplexValue z) { return complex_pow(z, z); }
ComplexValue sum_with_negative(ComplexValue z) { return complex_exp(complex_log_add_exp(z, -z)); }

#define GRAFT_CASE(name)                                                \
  {                                                                     \
#name, complex_##name, [](const Number& z) { return std::name(z); } \
  }
const Case kCases[] = {
    GRAFT_CASE(exp),
    GRAFT_CASE(log),
    GRAFT_CASE(sqrt),
    GRAFT_CASE(sin),
    GRAFT_CASE(cos),
    GRAFT_CASE(tan),
    GRAFT_CASE(sinh),
    GRAFT_CASE(cosh),
    GRAFT_CASE(tanh),
    GRAFT_CASE(asin),
    GRAFT_CASE(acos),
    GRAFT_CASE(atan),
    GRAFT_CASE(asinh),
    GRAFT_CASE(acosh),
    GRAFT_CASE(atanh),
    {"expm1", complex_expm1, [](const Number& z) { return std::exp(z) - 1.0; }},
    {"log1p", complex_log1p, [](const Number& z) { return std::log(1.0 + z); }},
    {"exp2", complex_exp2, [](const Number& z) { return std::exp(z * std::log(2.0)); }},
    {"log2", complex_log2, [](const Number& z) { return std::log(z) / std::log(2.0); }},
    {"log10", complex_log10, [](const Number& z) { return std::log10(z); }},
    {"rsqrt", complex_rsqrt, [](const Number& z) { return 1.0 / std::sqrt(z); }},
    {"sigmoid", complex_sigmoid, [](const Number& z) { return 1.0 / (1.0 + std::exp(-z)); }},
    {"sinc", complex_sinc, sinc},
    {"pow", power_of_itself, [](const Number& z) { return std::pow(z, z); }},
    {"log_add_exp", sum_with_negative, [](const Number& z) { return std::exp(z) + std::exp(-z); }},
};

class ComplexFunctions : public testing::TestWithParam<Case> {};

TEST_P(ComplexFunctions, MatchTheLibrary) {
  const Case& test = GetParam();
  ir::Builder b("apply");
  const ir::Address out = b.write(GRAFT_FLOAT64), in = b.read(GRAFT_FLOAT64);
  b.vector_loop(b.i64(0), b.index(), [&](ir::Value i) {
    const ComplexValue z = test.function({in.load(i * 2), in.load(i * 2 + 1)});
    out.store(i * 2, z.re);
    out.store(i * 2 + 1, z.im);
  });
  const ir::Compiled kernel(b.finish());
  const double parts[] = {0.0, -0.0, 0.3, -0.3, 1.0, -1.0, 2.5, -2.5, 25.0, -25.0};
  std::vector<Number> numbers;
  for (double re : parts) {
    for (double im : parts) numbers.emplace_back(re, im);
  }
  std::vector<Number> got(numbers.size());
  graft_kernel_argument arguments[3];
  arguments[0].address = got.data();
  arguments[1].address = numbers.data();
  arguments[2].bits = numbers.size();
  kernel(arguments);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Number exact = test.exact(numbers[i]);
    if (!std::isfinite(exact.real()) || !std::isfinite(exact.imag())) continue;
    EXPECT_LE(std::abs(got[i] - exact), 1e-13 * std::max(1.0, std::abs(exact)))
        << test.name << numbers[i] << ": " << got[i] << " and not " << exact;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ComplexFunctions, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace graft
