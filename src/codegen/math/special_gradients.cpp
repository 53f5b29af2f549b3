// src/codegen/math/special_gradients.cpp: how samples of distributions change with their
// parameters.
#include <initializer_list>
#include <vector>

#include "codegen/math/formulas.h"
#include "codegen/math/special_functions.h"

namespace graft::ir {

namespace {

Value by_powers(Value x, std::initializer_list<Value> coefficients) {
  const std::vector<Value> c(coefficients);
  Value result = c.back();
  for (size_t i = c.size() - 1; i-- > 0;) result = result * x + c[i];
  return result;
}

// NaN: the tail is so thin that the gradient is 0.
Value or_zero(Value x) { return select(is_nan(x), 0, x); }

// Gamma, x below 0.8: Taylor's series of the distribution function and of its derivative.
Value gamma_of_small(Value alpha, Value x) {
  Value term = like(x, 1), below = alpha;
  Value density = 1 / below, slope = 1 / (below * below);
  for (int i = 1; i <= 5; ++i) {
    term = term * -x / i;
    below = below + 1;
    density = density + term / below;
    slope = slope + term / (below * below);
  }
  const Value power = pow(x, alpha);
  const Value change = (log(x) - digamma(alpha)) * power * density - power * slope;
  return or_zero(-change / (pow(x, alpha - 1) * exp(-x)));
}

// Gamma, alpha above 8: Rice's saddle point expansion, and its series where x is close to alpha.
Value gamma_near_alpha(Value alpha, Value x) {
  const Value square = alpha * alpha;
  const Value factor = 1 + 24 * alpha * (1 + 12 * alpha);
  const Value rest =
      1440 * square + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x);
  return factor * rest / (1244160 * square * square);
}

Value gamma_of_large_alpha(Value alpha, Value x) {
  const Value distance = alpha - x, logarithm = log(x / alpha);
  const Value root = sqrt(8 * alpha);
  const Value first = root / distance;
  const Value second = pow(x - alpha - alpha * logarithm, like(x, -1.5));
  const Value both = select(x < alpha, first - second, first + second);
  const Value sum = logarithm * both - sqrt(2 / alpha) * (alpha + x) / (distance * distance);
  const Value stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha));
  const Value near = (x >= 0.9 * alpha) & (x <= 1.1 * alpha);
  return select(near, gamma_near_alpha(alpha, x), -stirling * x * sum / root);
}

// Gamma elsewhere: a rational function of log(x / alpha) and log(alpha), fitted by PyTorch.
Value gamma_by_fit(Value alpha, Value x) {
  const Value u = log(x / alpha), v = log(alpha);
  const Value p = by_powers(v, {polynomial(u, {0.16009398, 0.53487893, 0.040121004}),
                                polynomial(u, {-0.094634809, 0.1298071, -0.0065914022}),
                                polynomial(u, {0.025146376, 0.065735949, -0.0026286047}),
                                polynomial(u, {-0.0030648343, -0.0015649758, -0.0013441777})});
  const Value q = by_powers(v, {polynomial(u, {1, 0.16639465, 0.017050642}),
                                polynomial(u, {0.32668115, 0.020070113, -0.0021309326}),
                                polynomial(u, {0.10406089, -0.0035938915, 0.00085092367}),
                                polynomial(u, {0.0014179084, -0.00058392623, -1.5247877e-07})});
  return exp(p / q);
}

// Beta, x close to 0: Taylor's series, by alpha and by beta.
Value beta_alpha_of_small(Value x, Value alpha, Value beta) {
  const Value factor = digamma(alpha) - digamma(alpha + beta) - log(x);
  Value term = like(x, 1), sum = (factor + 1 / alpha) / alpha;
  for (int i = 1; i <= 10; ++i) {
    const Value below = alpha + i;
    term = term * (i - beta) * x / i;
    sum = sum + term / below * (factor + 1 / below);
  }
  return or_zero(x * pow(1 - x, -beta) * sum);
}

Value beta_beta_of_small(Value x, Value alpha, Value beta) {
  const Value factor = digamma(alpha + beta) - digamma(beta);
  Value term = like(x, 1), product = term, slope = like(x, 0), sum = factor / alpha;
  for (int i = 1; i <= 8; ++i) {
    term = term * -x / i;
    slope = slope * (beta - i) + product;
    product = product * (beta - i);
    sum = sum + term / (alpha + i) * (slope + factor * product);
  }
  return or_zero(-pow(1 - x, 1 - beta) * sum);
}

// Beta, both parameters above 6: Rice's expansion; around the mean, where that is singular, a
// polynomial.
Value beta_near_mean(Value x, Value alpha, Value beta) {
  const Value total = alpha + beta, square = beta * beta;
  const Value sum = by_powers(
      alpha, {47 * x * square * square, (43 + 20 * (16 + 27 * beta) * x) * square * beta,
              3 * (59 + 180 * beta - 90 * x) * square,
              (453 + 1620 * beta * (1 - x) - 455 * x) * beta, 8 * (1 - x) * (135 * beta - 11)});
  const Value above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total);
  const Value below = 12960 * alpha * alpha * alpha * square * (1 + 12 * total);
  return above / (1 - x) * sum / below;
}

Value stirling(Value x) { return 1 + 1 / (12 * x) + 1 / (288 * x * x); }

Value beta_of_large(Value x, Value alpha, Value beta) {
  const Value total = alpha + beta, mean = alpha / total;
  const Value spread = 0.1 * sqrt(alpha * beta / (total + 1)) / total;
  const Value distance = alpha * (x - 1) + beta * x;
  const Value first = (2 * alpha * alpha * (x - 1) + alpha * beta * (x - 1) - x * beta * beta) /
                      (sqrt(2 * alpha / beta) * total * sqrt(total) * distance * distance);
  const Value third = sqrt(8 * alpha * beta / total) / distance;
  const Value exponent = beta * log(beta / (total * (1 - x))) + alpha * log(alpha / (total * x));
  const Value fourth = pow(exponent, like(x, -1.5));
  const Value both = third + select(x < mean, fourth, -fourth);
  const Value sum = first + 0.5 * log(alpha / (total * x)) * both;
  const Value factor = stirling(alpha) * stirling(beta) / stirling(total);
  const Value far = factor * -x / sqrt(2 * alpha * beta / total) * sum;
  const Value near = (x >= mean - spread) & (x <= mean + spread);
  return select(near, beta_near_mean(x, alpha, beta), far);
}

// Beta elsewhere: a rational correction, fitted by PyTorch, of an analytic approximation.
// Coefficients of u^i a^j b^k, in this order.
constexpr double kAbove[3][3][4] = {
    {{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
     {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
     {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
    {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
     {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
     {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
    {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
     {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
     {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}};
constexpr double kBelow[3][3][4] = {
    {{1, -0.02924021934, -0.04438342661, 0.007285809825},
     {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
     {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
    {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
     {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
     {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
    {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
     {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
     {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}};

Value cubic(const double (&c)[3][3][4], Value u, Value a, Value b) {
  Value sum = like(u, 0);
  for (int i = 2; i >= 0; --i) {
    Value inner = like(u, 0);
    for (int j = 2; j >= 0; --j) {
      const double(&k)[4] = c[i][j];
      inner = inner * a + polynomial(b, {k[0], k[1], k[2], k[3]});
    }
    sum = sum * u + inner;
  }
  return sum;
}

Value beta_by_fit(Value x, Value alpha, Value total) {
  const Value u = log(x), a = log(alpha) - u, b = log(total) - a;
  const Value analytic = x * (digamma(total) - digamma(alpha)) / (total - alpha);
  return cubic(kAbove, u, a, b) / cubic(kBelow, u, a, b) * analytic;
}

}  // namespace

Value gamma_gradient(Value alpha, Value x) {
  const Value usual = select(alpha > 8, gamma_of_large_alpha(alpha, x), gamma_by_fit(alpha, x));
  return select(x < 0.8f, gamma_of_small(alpha, x), usual);
}

Value dirichlet_gradient(Value x, Value alpha, Value total) {
  const Value beta = total - alpha, boundary = total * x * (1 - x);
  const Value low = (x <= 0.5) & (boundary < 2.5), high = (x >= 0.5) & (boundary < 0.75);
  const Value large = (alpha > 6) & (beta > 6);
  const Value usual = select(large, beta_of_large(x, alpha, beta), beta_by_fit(x, alpha, total));
  const Value upper = select(high, -beta_beta_of_small(1 - x, beta, alpha), usual);
  return select(low, beta_alpha_of_small(x, alpha, beta), upper);
}

}  // namespace graft::ir
