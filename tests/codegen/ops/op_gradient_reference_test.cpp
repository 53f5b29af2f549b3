// tests/codegen/ops/op_gradient_reference_test.cpp: gradients of samples, as PyTorch's formulas
// give them number by number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/ops/op_table.h"
#include "tests/codegen/ops/op_reference.h"

namespace graft {
namespace {

using D = const Doubles&;
constexpr double kInf = std::numeric_limits<double>::infinity();

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (std::isinf(x)) return x > 0 ? kInf : std::nan("");
  if (x < 0 && x == std::floor(x)) return std::nan("");
  if (x < 0) return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  double sum = 0;
  for (; x < 20; x += 1) sum -= 1 / x;
  const double s = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s / 252));
}
double or_zero(double x) { return std::isnan(x) ? 0 : x; }

double saddle_point(double alpha, double x) {
  if (0.9 * alpha <= x && x <= 1.1 * alpha) {
    const double first = 1 + 24 * alpha * (1 + 12 * alpha);
    const double second = 1440 * alpha * alpha + 6 * x * (53 - 120 * x) - 65 * x * x / alpha +
                          alpha * (107 + 3600 * x);
    return first * second / (1244160 * (alpha * alpha) * (alpha * alpha));
  }
  const double root = std::sqrt(8 * alpha), ratio = std::log(x / alpha);
  const double tail = std::pow(x - alpha - alpha * ratio, -1.5);
  const double both = root / (alpha - x) + (x < alpha ? -tail : tail);
  const double sum =
      ratio * both - std::sqrt(2 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x));
  return -(1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))) * (x * sum) / root;
}

double gamma_gradient(double alpha, double x) {
  if (x < 0.8f) {
    double numerator = 1, first = 1 / alpha, second = 1 / (alpha * alpha);
    for (int i = 1; i <= 5; ++i) {
      numerator *= -x / i;
      first += numerator / (alpha + i);
      second += numerator / ((alpha + i) * (alpha + i));
    }
    const double power = std::pow(x, alpha), density = std::pow(x, alpha - 1) * std::exp(-x);
    const double change = (std::log(x) - digamma(alpha)) * (power * first) - power * second;
    return or_zero(-change / density);
  }
  if (alpha > 8) return saddle_point(alpha, x);
  static const double c[3][8] = {{0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1,
                                  0.32668115, 0.10406089, 0.0014179084},
                                 {0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465,
                                  0.020070113, -0.0035938915, -0.00058392623},
                                 {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777,
                                  0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07}};
  const double u = std::log(x / alpha), v = std::log(alpha);
  double p = 0, q = 0;
  for (int i = 0; i < 4; ++i) {
    p += std::pow(v, i) * (c[0][i] + u * c[1][i] + u * u * c[2][i]);
    q += std::pow(v, i) * (c[0][i + 4] + u * c[1][i + 4] + u * u * c[2][i + 4]);
  }
  return std::exp(p / q);
}

double near_zero(double x, double alpha, double beta) {
  const double factor = digamma(alpha) - digamma(alpha + beta) - std::log(x);
  double numerator = 1, sum = 1 / alpha * (factor + 1 / alpha);
  for (int i = 1; i <= 10; ++i) {
    numerator *= (i - beta) * x / i;
    sum += numerator / (alpha + i) * (factor + 1 / (alpha + i));
  }
  return or_zero(x * std::pow(1 - x, -beta) * sum);
}

double near_one(double x, double alpha, double beta) {
  const double factor = digamma(alpha + beta) - digamma(beta);
  double numerator = 1, product = 1, slope = 0, sum = factor / alpha;
  for (int i = 1; i <= 8; ++i) {
    numerator *= -x / i;
    slope = slope * (beta - i) + product;
    product *= beta - i;
    sum += numerator / (alpha + i) * (slope + factor * product);
  }
  return or_zero(-std::pow(1 - x, 1 - beta) * sum);
}

double dirichlet_gradient(double x, double alpha, double total) {
  const double beta = total - alpha, boundary = total * x * (1 - x);
  if (x <= 0.5 && boundary < 2.5) return near_zero(x, alpha, beta);
  if (x >= 0.5 && boundary < 0.75) return -near_one(1 - x, beta, alpha);
  // Both parameters above 6 are out of the test's reach.
  static const double c[2][3][3][4] = {
      {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
        {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
        {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
       {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
        {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
        {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
       {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
        {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
        {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
      {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
        {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
        {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
       {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
        {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
        {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
       {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
        {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
        {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}}};
  const double u = std::log(x), a = std::log(alpha) - u, b = std::log(total) - a;
  double sums[2] = {0, 0};
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const double(&d)[4] = c[k][i][j];
        sums[k] += std::pow(u, i) * std::pow(a, j) * (d[0] + b * (d[1] + b * (d[2] + b * d[3])));
      }
    }
  }
  return sums[0] / sums[1] * (x * (digamma(total) - digamma(alpha)) / beta);
}

const Reference kReferences[] = {
    {"standard_gamma_gradient", [](D x, D) -> Doubles { return {gamma_gradient(x[0], x[1])}; }},
    {"dirichlet_gradient",
     [](D x, D) -> Doubles { return {dirichlet_gradient(x[0], x[1], x[2])}; }},
};

TEST(GradientReference, BelongsToARow) {
  for (const Reference& reference : kReferences) {
    EXPECT_NE(find_op(reference.name), nullptr) << reference.name;
  }
}

}  // namespace

const Reference* find_gradient_reference(std::string_view name) {
  for (const Reference& reference : kReferences) {
    if (name == reference.name) return &reference;
  }
  return nullptr;
}

}  // namespace graft
