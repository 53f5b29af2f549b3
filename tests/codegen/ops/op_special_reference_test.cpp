// tests/codegen/ops/op_special_reference_test.cpp: what the rows of special functions should give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "codegen/ops/op_table.h"
#include "tests/codegen/ops/op_reference.h"

namespace graft {
namespace {

using D = const Doubles&;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;
const double kNan = std::nan("");

double erfcx(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  return 1 / (x * std::sqrt(kPi)) * (1 - 0.5 / (x * x));
}
double log_ndtr(double x) {
  return x < -5 ? std::log(erfcx(-x / std::sqrt(2.0)) / 2) - x * x / 2
                : std::log1p(-0.5 * std::erfc(x / std::sqrt(2.0)));
}
double ndtri(double p) {
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (!(p > 0 && p < 1)) return kNan;
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}
double bessel_i(int n, double x) {
  if (!std::isfinite(x)) return kNan;
  const double size = std::cyl_bessel_i(n, std::abs(x));
  return n == 1 && x < 0 ? -size : size;
}
double scaled_i(int n, double x) {
  return std::isinf(x) ? (x < 0 ? -0.0 : 0.0) : bessel_i(n, x) * std::exp(-std::abs(x));
}
double bessel_k(int n, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  return x == 0 ? kInf : std::isinf(x) ? 0 : std::cyl_bessel_k(n, x);
}
double scaled_k(int n, double x) {
  return x > 0 && std::isinf(x) ? 0 : bessel_k(n, x) * std::exp(x);
}
double bessel_j(int n, double x) {
  if (!std::isfinite(x)) return kNan;
  return n == 0 ? ::j0(x) : ::j1(x);
}
double bessel_y(int n, double x) {
  if (!std::isfinite(x) || x < 0) return kNan;
  return x == 0 ? -kInf : n == 0 ? ::y0(x) : ::y1(x);
}
// By its series, in which nothing cancels much within the test's reach.
double airy(double x) {
  if (!std::isfinite(x)) return kNan;
  long double f = 1, g = x, df = 1, dg = x, cube = static_cast<long double>(x) * x * x;
  for (int k = 1; k < 80; ++k) {
    df *= cube / ((3 * k - 1) * (3 * k)), dg *= cube / ((3 * k) * (3 * k + 1));
    f += df, g += dg;
  }
  return static_cast<double>(0.355028053887817239260063L * f - 0.258819403792806798405183L * g);
}
double trigamma(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : kNan;
  if (x == 0) return kInf;
  if (x < 0 && x == std::floor(x)) {
    // What rounding to float leaves of the sine of pi x.
    const double sine =
        std::sin(static_cast<double>(static_cast<float>(kPi) * static_cast<float>(x)));
    return kPi * kPi / (sine * sine);
  }
  double sum = 0;
  for (; x < 30; x += 1) sum += 1 / (x * x);
  return sum + 1 / x + 0.5 / (x * x) + 1 / (6 * x * x * x) - 1 / (30 * std::pow(x, 5));
}
// Hurwitz'; by many terms and the first corrections.
double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1 || std::isnan(q)) return kNan;
  if (q <= 0 && q == std::floor(q)) return kInf;
  if (std::isnan(s) || (q <= 0 && s != std::floor(s))) return kNan;
  if (std::isinf(q)) return kNan;
  double sum = 0;
  const double end = q + 200;
  for (int k = 0; k < 200; ++k) sum += std::pow(q + k, -s);
  return sum + std::pow(end, 1 - s) / (s - 1) + std::pow(end, -s) * (0.5 + s / (12 * end));
}
// P(a, x) by its series, which is good enough for small arguments.
double igamma(double a, double x) {
  if (a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  if (std::isnan(a) || std::isnan(x)) return kNan;
  double term = 1 / a, sum = term;
  for (int k = 1; k < 400; ++k) term *= x / (a + k), sum += term;
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}
double degree(double n) { return std::isfinite(n) ? std::trunc(n) : -1; }
// The sum c T_k with first value q, as a plain recurrence.
double chebyshev(double x, double n, double first) {
  n = degree(n);
  if (n < 0) return 0;
  double p = 1, q = first;
  if (n == 0) return 1;
  for (int k = 2; k <= n; ++k) q = std::exchange(p, q), q = 2 * x * p - q;
  return q;
}

template <class Step>
double recur(double n, double first, Step step) {
  n = degree(n);
  if (n <= 0) return n == 0;
  double p = 1, q = first;
  for (int k = 2; k <= n; ++k) {
    const double next = step(k, q, p);
    p = q, q = next;
  }
  return q;
}
double next_bfloat16(float a, float b) {
  const float step = std::nextafterf(a, b);
  if (step == a || std::isnan(step)) return step;
  uint32_t bits;
  std::memcpy(&bits, &a, 4);
  if (a == 0) bits = b < 0 ? 0x80000000u : 0;
  bits += (std::abs(step) > std::abs(a)) ? 0x10000 : -0x10000;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

double next_float16(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == b) return b;
  if (a == 0) return std::copysign(0x1p-24, b);
  if (std::isinf(a)) return std::copysign(65504, a);
  const bool away = (a < b) == (a > 0);
  const double size = std::abs(a);
  if (size < 0x1p-14 || (size == 0x1p-14 && !away)) {
    return std::copysign(std::abs(a) + (away ? 0x1p-24 : -0x1p-24), a);
  }
  uint32_t bits;
  std::memcpy(&bits, &a, 4);
  bits += away ? 0x2000 : -0x2000;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

#define GRAFT_ONE(name, expression)                      \
  {                                                      \
    name, [](D x, D) -> Doubles { return {expression}; } \
  }
const Reference kReferences[] = {
    GRAFT_ONE("erfcx", erfcx(x[0])),
    GRAFT_ONE("ndtri", ndtri(x[0])),
    GRAFT_ONE("log_ndtr", log_ndtr(x[0])),
    GRAFT_ONE("i0", bessel_i(0, x[0])),
    GRAFT_ONE("i0e", scaled_i(0, x[0])),
    GRAFT_ONE("i1", bessel_i(1, x[0])),
    GRAFT_ONE("i1e", scaled_i(1, x[0])),
    GRAFT_ONE("bessel_j0", bessel_j(0, x[0])),
    GRAFT_ONE("bessel_j1", bessel_j(1, x[0])),
    GRAFT_ONE("bessel_y0", bessel_y(0, x[0])),
    GRAFT_ONE("bessel_y1", bessel_y(1, x[0])),
    GRAFT_ONE("modified_bessel_i0", bessel_i(0, x[0])),
    GRAFT_ONE("modified_bessel_i1", bessel_i(1, x[0])),
    GRAFT_ONE("modified_bessel_k0", bessel_k(0, x[0])),
    GRAFT_ONE("modified_bessel_k1", bessel_k(1, x[0])),
    GRAFT_ONE("scaled_bessel_k0", scaled_k(0, x[0])),
    GRAFT_ONE("scaled_bessel_k1", scaled_k(1, x[0])),
    GRAFT_ONE("spherical_bessel_j0", std::isinf(x[0]) ? 0 : x[0] == 0 ? 1 : std::sin(x[0]) / x[0]),
    GRAFT_ONE("airy_ai", airy(x[0])),
    GRAFT_ONE("trigamma", trigamma(x[0])),
    {"polygamma", [](D x, D) -> Doubles { return {-2 * zeta(3, x[0])}; }, {2}},
    GRAFT_ONE("zeta", zeta(x[0], x[1])),
    GRAFT_ONE("igamma", igamma(x[0], x[1])),
    GRAFT_ONE("igammac", 1 - igamma(x[0], x[1])),
    GRAFT_ONE("chebyshev_t", chebyshev(x[0], x[1], x[0])),
    GRAFT_ONE("chebyshev_u", chebyshev(x[0], x[1], 2 * x[0])),
    GRAFT_ONE("chebyshev_v", chebyshev(x[0], x[1], 2 * x[0] - 1)),
    GRAFT_ONE("chebyshev_w", chebyshev(x[0], x[1], 2 * x[0] + 1)),
    GRAFT_ONE("shifted_chebyshev_t", chebyshev(2 * x[0] - 1, x[1], 2 * x[0] - 1)),
    GRAFT_ONE("shifted_chebyshev_u", chebyshev(2 * x[0] - 1, x[1], 4 * x[0] - 2)),
    GRAFT_ONE("shifted_chebyshev_v", chebyshev(2 * x[0] - 1, x[1], 4 * x[0] - 3)),
    GRAFT_ONE("shifted_chebyshev_w", chebyshev(2 * x[0] - 1, x[1], 4 * x[0] - 1)),
    {"hermite_h", [](D x, D) -> Doubles { return {degree(x[1]) > 128 ? kNan : recur(x[1], 2 * x[0], [&](int k, double q, double p) {
                return 2 * x[0] * q - 2 * (k - 1) * p;
              })}; }, {}, 3e-5},
    {"hermite_he", [](D x, D) -> Doubles { return {degree(x[1]) > 128 ? kNan : recur(x[1], x[0], [&](int k, double q, double p) {
                return x[0] * q - (k - 1) * p;
              })}; }, {}, 3e-5},
    GRAFT_ONE("laguerre_l", recur(x[1], 1 - x[0], [&](int k, double q, double p) {
                return ((2 * k - 1 - x[0]) * q - (k - 1) * p) / k;
              })),
    GRAFT_ONE("legendre_p", recur(x[1], x[0], [&](int k, double q, double p) {
                return ((2 * k - 1) * x[0] * q - (k - 1) * p) / k;
              })),
    GRAFT_ONE("nextafter", std::nextafterf(static_cast<float>(x[0]), static_cast<float>(x[1]))),
    {"nextafter_bfloat16",
     [](D x, D) -> Doubles {
       return {next_bfloat16(static_cast<float>(x[0]), static_cast<float>(x[1]))};
     }},
    {"kaiser_window",
     [](D x, D s) -> Doubles {
       const double middle = (s[0] - 1) / 2, away = (x[0] - middle) / middle;
       return {bessel_i(0, s[1] * std::sqrt(std::abs(1 - away * away))) / bessel_i(0, s[1])};
     },
     {13, 5}},
    {"ldexp",
     [](D x, D) -> Doubles {
       if (std::isnan(x[1])) return {kNan};
       return {std::ldexp(x[0], static_cast<int>(std::clamp(x[1], -4000.0, 4000.0)))};
     }},
    {"nextafter_float16",
     [](D x, D) -> Doubles {
       return {next_float16(static_cast<float>(x[0]), static_cast<float>(x[1]))};
     }},
    {"frexp",
     [](D x, D) -> Doubles {
       int exponent = 0;
       const double fraction = std::frexp(x[0], &exponent);
       return {fraction, static_cast<double>(std::isfinite(x[0]) ? exponent : 0)};
     }},
};

uint64_t magnitude(int64_t x) {
  return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

const IntegerReference kIntegerReferences[] = {
    {"gcd",
     [](const Integers& x, const Integers&) {
       return static_cast<int64_t>(std::gcd(magnitude(x[0]), magnitude(x[1])));
     }},
    {"lcm",
     [](const Integers& x, const Integers&) -> int64_t {
       const auto divisor = std::gcd(magnitude(x[0]), magnitude(x[1]));
       if (divisor == 0) return 0;
       const uint64_t product = magnitude(x[0]) / divisor * magnitude(x[1]);
       return static_cast<int64_t>(static_cast<int64_t>(product) < 0 ? 0 - product : product);
     }},
};

TEST(SpecialReference, BelongsToARow) {
  for (const Reference& reference : kReferences) {
    EXPECT_NE(find_op(reference.name), nullptr) << reference.name;
  }
}

}  // namespace

const Reference* find_special_reference(std::string_view name) {
  for (const Reference& reference : kReferences) {
    if (name == reference.name) return &reference;
  }
  return nullptr;
}

const IntegerReference* find_special_integer_reference(std::string_view name) {
  for (const IntegerReference& reference : kIntegerReferences) {
    if (name == reference.name) return &reference;
  }
  return nullptr;
}

}  // namespace graft
