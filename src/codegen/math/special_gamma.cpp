// src/codegen/math/special_gamma.cpp: relatives of the gamma function, and greatest common
// divisors.
#include <limits>
#include <numbers>

#include "codegen/math/formulas.h"
#include "codegen/math/special_functions.h"

namespace graft::ir {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMostTerms = 5000;  // enough for a up to kLarge
constexpr double kLarge = 1e5;

Value i32(Value like, int number) { return like.builder().constant(Type::kI32, number); }

// x^a exp(-x) / gamma(a + 1), by Stirling's series (A. & S. 6.1.41) where a is large: there
// a log(x) - x - lgamma(a) would cancel.
Value power_factor(Value a, Value x) {
  const Value direct = exp(a * log(x) - x - lgamma(a + 1));
  const Value mu = (x - a) / a, s = 1 / (a * a);
  const Value correction = polynomial(s, {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680}) / a;
  const Value stirling = exp(a * (log1p(mu) - mu) - correction) / sqrt(a * (2 * std::numbers::pi));
  return select(a < 20, direct, stirling);
}

// P(a, x) / power_factor: A. & S. 6.5.29.
Value series(Value a, Value x) {
  const Variable term(like(a, 1)), sum(like(a, 1)), divisor(a);
  a.builder().loop(i32(a, 0), i32(a, kMostTerms), [&](Value) {
    divisor = divisor + 1;
    term = term * x / divisor;
    sum = sum + term;
    a.builder().break_if(term <= sum * kEpsilon);
  });
  return sum.get();
}

// Q(a, x) / power_factor / a: A. & S. 6.5.31, summed as Lentz does (Applied Optics 15, 1976).
Value fraction(Value a, Value x) {
  const Variable b(x + 1 - a), c(like(a, 1 / 1e-300)), d(1 / b.get()), result(d.get());
  const Variable k(like(a, 0));
  a.builder().loop(i32(a, 0), i32(a, kMostTerms), [&](Value) {
    k = k + 1;
    const Value numerator = k * (a - k);
    b = b + 2;
    const Value below = numerator * d + b, above = b + numerator / c;
    d = 1 / select(abs(below) < 1e-300, like(a, 1e-300), below);
    c = select(abs(above) < 1e-300, like(a, 1e-300), above);
    const Value change = d * c;
    result = result * change;
    a.builder().break_if(abs(change - 1) <= kEpsilon);
  });
  return result.get();
}

// Q of large a (Temme, SIAM Journal on Mathematical Analysis 10, 1979): two terms of the expansion.
Value uniform(Value a, Value x, bool upper) {
  const Value ratio = (x - a) / a;  // beyond the bounds e^(-a half_square) is 0
  const Value mu = select(ratio < -0.9999, -0.9999, select(ratio > 1e3, 1e3, ratio));
  const Value half_square = mu - log1p(mu);
  const Value eta = copysign(sqrt(2 * half_square), mu);
  const Value c = polynomial(eta, {-1.0 / 3, 1.0 / 12, -2.0 / 135, 1.0 / 864, 1.0 / 2835}) +
                  polynomial(eta, {-1.0 / 540, -1.0 / 288}) / a;
  const Value rest = exp(-a * half_square) / sqrt(a * (2 * std::numbers::pi)) * c;
  const Value argument = eta * sqrt(a * 0.5);
  return upper ? erfc(argument) * 0.5 + rest : erfc(-argument) * 0.5 - rest;
}

// Either half of the incomplete gamma function, inside its domain.
Value inside(Value a, Value x, bool upper) {
  Builder& b = a.builder();
  const Variable result(uniform(a, x, upper));
  b.if_(a <= kLarge, [&] {
    const Value factor = power_factor(a, x);
    b.if_(
        x < a + 1,
        [&] {
          const Value low = factor * series(a, x);
          result = upper ? 1 - low : low;
        },
        [&] {
          const Value high = factor * a * fraction(a, x);
          result = upper ? high : 1 - high;
        });
  });
  return result.get();
}

Value incomplete(Value a, Value x, bool upper) {
  const Type type = a.type();
  const Value wide_a = cast(Type::kF64, a), wide_x = cast(Type::kF64, x);
  const double none = upper ? 1 : 0, all = 1 - none;
  const Value infinite = is_inf(wide_x), usable = (wide_a > 0) & (wide_x > 0) & !infinite;
  const Value ordinary = usable & !is_inf(wide_a);
  const Value value = inside(select(ordinary, wide_a, 1), select(ordinary, wide_x, 1), upper);
  Value edge = select(infinite, like(wide_x, all), kNan);
  edge = select(is_inf(wide_a), select(infinite, like(wide_x, kNan), none), edge);
  edge = select(wide_x == 0, none, edge);
  edge = select(wide_a == 0, select(wide_x > 0, like(wide_x, all), kNan), edge);
  const Value outside = (wide_a < 0) | (wide_x < 0);
  return cast(type, select(ordinary, value, select(outside, kNan, edge)));
}

}  // namespace

// Reflection for x < 0.5, recurrence up to 10, the asymptotic series (A. & S. 6.4.6, .7, .12).
Value trigamma(Value x) {
  const Value reflected = x < 0.5;
  Value y = select(reflected, 1 - x, x), sum = like(x, 0);
  for (int i = 0; i < 10; ++i) {
    const Value below = y < 10;
    sum = select(below, sum + 1 / (y * y), sum);
    y = select(below, y + 1, y);
  }
  const Value s = 1 / (y * y);
  const Value tail =
      polynomial(s, {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6});
  const Value result = sum + (1 + 0.5 / y + s * tail) / y;
  const Value sine = sin((x - round(x)) * std::numbers::pi);
  const Value squared = std::numbers::pi * std::numbers::pi / (sine * sine);
  return select(reflected, squared - result, result);
}

// Euler and Maclaurin's formula (A. & S. 23.1.30): terms up to k + q >= 10, then the integral and
// the corrections by Bernoulli's numbers.
Value formula_zeta(Value x, Value q) {
  const Value s = cast(Type::kF64, x), first = cast(Type::kF64, q);
  const Value missing = select(first < 0, ceil(-first), 0);
  const Value count = cast(Type::kI32, select(missing < 1e6, missing, 1e6)) + 10;
  const Variable sum(like(s, 0));
  s.builder().loop(i32(s, 0), count,
                   [&](Value k) { sum = sum + pow(first + cast(Type::kF64, k), -s); });
  const Value w = first + cast(Type::kF64, count), power = pow(w, -s);
  Value result = sum + power * w / (s - 1) + power * 0.5;
  // B_2j / (2j)!
  const double factors[] = {1.0 / 12,          -1.0 / 720,
                            1.0 / 30240,       -1.0 / 1209600,
                            1.0 / 47900160,    -691.0 / 1307674368000,
                            1.0 / 74724249600, -3617.0 / 10670622842880000};
  Value rising = s * power / w;
  int step = 1;
  for (double factor : factors) {
    result = result + rising * factor;
    rising = rising * (s + step) * (s + (step + 1)) / (w * w);
    step += 2;
  }
  const Value at_pole = (first <= 0) & (floor(first) == first);
  const Value undefined = (s < 1) | ((first <= 0) & (s != floor(s)));
  const Value negative = select(at_pole, kInfinity, select(undefined, kNan, result));
  const Value outcome = select(s < 1, kNan, negative);
  return cast(x.type(), select(s == 1, kInfinity, outcome));
}

Value formula_igamma(Value a, Value x) { return incomplete(a, x, false); }
Value formula_igammac(Value a, Value x) { return incomplete(a, x, true); }

Value formula_gcd(Value a, Value b) {
  // Unsigned, because the smallest number has no negative.
  const Variable large(cast(Type::kU64, abs(cast(Type::kI64, a))));
  const Variable small(cast(Type::kU64, abs(cast(Type::kI64, b))));
  a.builder().loop(i32(a, 0), i32(a, 100), [&](Value) {  // int64 needs at most 91
    a.builder().break_if(small == 0);
    const Value rest = large % small;
    large = small.get();
    small = rest;
  });
  return cast(a.type(), large);
}

}  // namespace graft::ir
