// src/codegen/math/gamma.cpp: the gamma function's logarithm and its derivative.
// Polynomials: tools/fit_polynomials.py. A. & S.: Abramowitz and Stegun, Handbook of Mathematical
// Functions.
#include <cmath>
#include <numbers>

#include "codegen/math/formulas.h"

namespace graft::ir {

namespace {

// Sine and cosine of pi d, where d is the distance to the nearest whole number.
struct HalfTurn {
  Value offset;  // x minus that number
  Value sine, cosine;
};

HalfTurn half_turn_of(Value x) {
  const Value offset = x - round(x), distance = abs(offset);
  const Value swap = distance > 0.25;
  const Value r = select(swap, 0.5 - distance, distance), s = r * r;
  const Value sine = r * polynomial(s, {3.1415926535897932, -5.1677127800499544, 2.5501640398733443,
                                        -0.59926452893720436, 0.08214586909639858,
                                        -0.0073700202801094454, 0.00046152425866329657});
  const Value cosine = polynomial(
      s, {0.99999999999999995, -4.9348022005446047, 4.058712126397684, -1.3352627670249423,
          0.23533054681199711, -0.025804932279111621, 0.0019067730934037215});
  return {offset, select(swap, cosine, sine), select(swap, sine, cosine)};
}

// log(gamma(x)) for 0.5 <= x <= 2.5: its two roots and the rest.
Value around_roots(Value x) {
  return (x - 1) * (x - 2) *
         polynomial(x - 1.5,
                    {0.48312895038706732,     -0.14595989581526142,    0.06291143179346248,
                     -0.031308507268778613,   0.016796095538255335,    -0.0094249769695988836,
                     0.0054590445827480394,   -0.003220173107633324,   0.0018436170660956382,
                     -0.0011133927540265333,  0.00099418313006042741,  -0.00061984140991288848,
                     -0.00032869968999953463, 0.00021703078200875861,  0.00086575320325202498,
                     -0.00055513576956315091, -0.00050084869234515191, 0.0003224124918445557,
                     0.00019568134964471063,  -0.0001255683104288196});
}

// log(gamma(x)) for x > 2.5: Stirling's series (A. & S. 6.1.41) from 8 on, up to there by
// recurrence.
Value beyond_roots(Value x) {
  const Value low = x < 8;
  const Value product = select(low, x * (x + 1) * (x + 2) * (x + 3), 1.0);
  const Value y = select(low, x + 4, x), inverse = 1 / y, s = inverse * inverse;
  const Value series =
      inverse * polynomial(s, {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188});
  const double half_log_two_pi = 0.91893853320467274;
  return (y - 0.5) * log_wide(y) - y + half_log_two_pi + series - log_wide(product);
}

// In f64 for a float32 result, without a branch: six steps of the recurrence as one fraction.
Value quick_digamma(Value x) {
  const Value reflected = x < 0.5;
  const Value start = select(reflected, 1 - x, x), low = start < 6;
  Value y = start, above = like(x, 0), below = like(x, 1);
  for (int i = 0; i < 6; ++i) {
    above = above * y + below;
    below = below * y;
    y = y + 1;
  }
  y = select(low, y, start);
  const Value inverse = 1 / y, s = inverse * inverse;
  const Value series =
      s * polynomial(s, {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760});
  const Value result =
      log_wide(y) - 0.5 * inverse - series - select(low, above / below, like(x, 0));
  const HalfTurn turn = half_turn_of(x);
  const Value mirrored = result - std::numbers::pi * copysign(turn.cosine / turn.sine, turn.offset);
  const Value pole = (x <= 0) & (turn.offset == 0);
  const Value at_pole = select(x == 0, copysign(like(x, kInfinity), -x), kNan);
  const Value outcome = select(pole, at_pole, select(reflected, mirrored, result));
  return select(x == kInfinity, x, outcome);
}

// Reflection for x < 0.5, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun
// 6.3.5, 6.3.7, 6.3.18).
Value exact_digamma(Value wide) {
  const Value reflected = wide < 0.5;
  Value y = select(reflected, 1 - wide, wide);
  Value sum = like(y, 0);
  for (int i = 0; i < 10; ++i) {
    const Value below = y < 10;
    sum = select(below, sum - 1 / y, sum);
    y = select(below, y + 1, y);
  }
  const Value s = 1 / (y * y);
  const Value series =
      s * polynomial(s, {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760});
  const Value result = sum + log(y) - 0.5 / y - series;
  const Value fraction = wide - round(wide);
  const Value mirrored = result - std::numbers::pi / tan(fraction * std::numbers::pi);
  const Value pole = (wide <= 0) & (fraction == 0);
  const Value at_pole = select(wide == 0, copysign(like(wide, kInfinity), -wide), kNan);
  const Value outcome = select(pole, at_pole, select(reflected, mirrored, result));
  return select(wide == kInfinity, wide, outcome);
}

}  // namespace

Value formula_digamma(Value x) {
  if (x.type() == Type::kF64) return exact_digamma(x);
  return cast(x.type(), quick_digamma(cast(Type::kF64, x)));
}

Value formula_lgamma(Value x) {
  const Value wide = cast(Type::kF64, x);
  const Value reflected = wide < 0.5;
  const Value y = select(reflected, 1 - wide, wide);
  const Value upper = select(y <= 2.5, around_roots(y), beyond_roots(y));
  const HalfTurn turn = half_turn_of(wide);
  const Value mirrored = std::log(std::numbers::pi) - log_wide(turn.sine) - upper;
  const Value infinite = is_inf(wide) | ((wide <= 0) & (turn.offset == 0));
  const Value outcome = select(infinite, kInfinity, select(reflected, mirrored, upper));
  return cast(x.type(), outcome);
}

}  // namespace graft::ir
