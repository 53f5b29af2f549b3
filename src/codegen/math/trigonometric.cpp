// src/codegen/math/trigonometric.cpp: trigonometric functions and their inverses.
// Polynomials: tools/fit_polynomials.py.
#include <limits>
#include <numbers>

#include "codegen/math/formulas.h"

namespace graft::ir {

namespace {

constexpr double kPi = std::numbers::pi;
// pi / 2 in two f32.
constexpr double kHalfPi = 1.57079637050628662, kHalfPiRest = -4.37113900018624283e-08;

Value widen(Value x) { return cast(Type::kF64, x); }
Value narrow(Value x) { return cast(Type::kF32, x); }

struct Angle {
  Value quadrant;      // i32
  Value sine, cosine;  // of the rest in -pi/4 .. pi/4
};

// x = n pi/2 + r.
struct Turns {
  Value quadrant;  // i32: n in the low bits
  Value n, r;
};

// With the first 24 bits of pi/2: the fused product is exact, and so is the difference.
Turns coarse_turns(Value x) {
  const Value shifted = fma(x, like(x, 2 / kPi), like(x, 0x1.8p23));
  const Value n = shifted - 0x1.8p23;
  return {bitcast(Type::kI32, shifted), n, fma(n, like(n, -1.57079637050628662), x)};
}

// The next 48 bits.
Value fine_rest(const Turns& turns) {
  const Value n = turns.n;
  return fma(n, like(n, 1.7151245100058819e-15), fma(n, like(n, 4.371138828673793e-08), turns.r));
}

Angle angle_of(Value x) {
  const Turns turns = coarse_turns(x);
  const Value r = fine_rest(turns), s = r * r;
  const Value sine =
      polynomial(s, {-0.16666664661114839, 0.0083327480375171432, -0.00019587840521304914});
  const Value cosine =
      polynomial(s, {-0.5, 0.041666664658300372, -0.0013888302802305998, 2.4547891619403868e-5});
  return {turns.quadrant, r + r * s * sine, 1 + s * cosine};
}

// The tangent divides, so it takes both in f64.
Angle wide_angle_of(Value x) {
  Angle angle;
  const Turns turns = coarse_turns(x);
  angle.quadrant = turns.quadrant;
  const Value r = widen(turns.r) + widen(turns.n) * 4.3711390001862426e-08, s = r * r;
  angle.sine =
      r + r * s *
              polynomial(s, {-0.16666666666663883, 0.0083333333310774224, -0.00019841266915235038,
                             2.7555990399839901e-6, -2.4805587179980247e-8});
  angle.cosine =
      1 - 0.5 * s +
      s * s *
          polynomial(s, {0.041666666666664677, -0.0013888888887276055, 2.4801585209738379e-5,
                         -2.755636931674654e-7, 2.0700565397085183e-9});
  return angle;
}

Value sign_bit(Value bits) { return bits & static_cast<int>(0x80000000); }

// The sine with the sign of another f32 on it.
Value sine_of(const Angle& angle, Value quadrant, Value sign) {
  const Value value = select((quadrant & 1) != 0, angle.cosine, angle.sine);
  const Value flip = sign_bit((quadrant << 30) ^ bitcast(Type::kI32, sign));
  return bitcast(Type::kF32, bitcast(Type::kI32, value) ^ flip);
}

// atan(y / x) for 0 <= y <= x in f64; y = x = 0 gives NaN.
Value atan_of_ratio(Value y, Value x) {
  const Value z = y / x;
  const Value s = z * z;
  return z + z * s *
                 polynomial(
                     s, {-0.33333333333306644, 0.19999999987965298, -0.14285713377825143,
                         0.11111083846317626, -0.090904761556012485, 0.076881197509293199,
                         -0.066398356758080341, 0.057621529218549239, -0.048720704150838975,
                         0.03810573400208697, -0.0257250480664198, 0.01384381022227436,
                         -0.0054082201638207591, 0.0013383275247828925, -0.00015571561601610953});
}

// The angle of (x, y) with y >= 0, in f64.
Value upper_angle(Value y, Value x) {
  const Value magnitude = abs(x);
  const Value steep = y > magnitude;
  // Both zero or both infinite: the ratio is 0 and 1.
  const Value infinite = is_inf(y) & is_inf(x);
  const Value small = select(infinite, 1.0, select(steep, magnitude, y));
  const Value large = select(infinite, 1.0, select(steep, y, magnitude));
  const Value acute = atan_of_ratio(small, select(large == 0, 1.0, large));
  const Value first = select(steep, kPi / 2 - acute, acute);
  return select(copysign(like(x, 1), x) < 0, kPi - first, first);
}

// (atan(z) - z) / z for |z| <= 1/2 and s = z^2.
Value arc_tangent_tail(Value s) {
  return s * polynomial(s, {-0.33333332900544845, 0.19999875028124863, -0.14279792921320154,
                            0.11006776996855392, -0.082349762841480672, 0.042247499764152593});
}

// a - b + c, where c is small beside a - b and a >= b.
Value difference(Value a, Value b, Value c) {
  const Value rounded = a - b;
  return rounded + ((a - rounded) - b + c);
}

// asin(a) = s + rest; for a > 1/2 pi/2 - 2 (s + rest), with s = sqrt((1 - a) / 2).
struct ArcSine {
  Value far;
  Value s, rest;  // NaN where a > 1
};

// The root comes from Newton's steps for 1 / sqrt(t), begun with half the exponent (C. Lomont, Fast
// inverse square root, 2003), because what its rounding misses is needed too.
ArcSine arc_sine(Value a) {
  const Value far = a > 0.5;
  const Value t = select(far, (1 - a) * 0.5, a * a);
  const Value bits = bitcast(Type::kI32, t);
  Value inverse = bitcast(Type::kF32, like(bits, 0x5f3759df) - (bits >> 1));
  for (int step = 0; step < 3; ++step) {
    inverse = inverse * fma(-0.5 * t * inverse, inverse, like(t, 1.5));
  }
  const Value root = t * inverse, missed = 0.5 * inverse * fma(-root, root, t);
  const Value s = select(far, root, a);
  const Value tail =
      t * polynomial(t, {0.16666666337430907, 0.075000945434974306, 0.044599401528510568,
                         0.031100662735509468, 0.017149238357617255, 0.033690847202917861});
  const Value rest = fma(s, tail, select(far, missed, like(a, 0)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {far, s, select(a > 1, nan, rest)};
}

}  // namespace

Value formula_sin(Value x) {
  const Angle angle = angle_of(abs(x));
  return sine_of(angle, angle.quadrant, x);
}

Value formula_cos(Value x) {
  const Angle angle = angle_of(x);
  return sine_of(angle, angle.quadrant + 1, like(x, 0));
}

Value formula_tan(Value x) {
  const Angle angle = wide_angle_of(abs(x));
  const Value swap = (angle.quadrant & 1) != 0;
  const Value over = select(swap, angle.cosine, angle.sine);
  const Value under = select(swap, -angle.sine, angle.cosine);
  const Value ratio = bitcast(Type::kI32, narrow(over / under));
  return bitcast(Type::kF32, ratio ^ sign_bit(bitcast(Type::kI32, x)));
}

Value formula_atan2(Value y, Value x) {
  const Value angle = narrow(upper_angle(widen(abs(y)), widen(x)));
  return copysign(angle, y);
}

// About 0.75 ULP: near 0, 1 and infinity by a tangent of at most 1/2, the denominator's own
// rounding made good.
Value formula_atan(Value x) {
  const Value a = abs(x), zero = like(x, 0);
  const Value steep = a > 2.5, middle = a > 0.5;
  const Value above = select(steep, -1.0, select(middle, a - 1, a));
  const Value below = select(steep, a, select(middle, a + 1, 1.0));
  const Value below_rest = select(middle & !steep, a - (below - 1), zero);
  const Value base = select(steep, kHalfPi, select(middle, kHalfPi / 2, zero));
  const Value base_rest = select(steep, kHalfPiRest, select(middle, kHalfPiRest / 2, zero));
  const Value inverse = 1 / below, z = above * inverse;
  const Value missed = fma(-z, below_rest, fma(-z, below, above)) * inverse;
  const Value s = z * z;
  const Value rest = fma(z, arc_tangent_tail(s), base_rest + select(is_inf(x), zero, missed));
  const Value sum = base + z;
  return copysign(sum + ((base - sum) + z + rest), x);
}

// About 0.7 ULP.
Value formula_asin(Value x) {
  const ArcSine arc = arc_sine(abs(x));
  const Value far = difference(like(x, kHalfPi), 2 * arc.s, kHalfPiRest - 2 * arc.rest);
  return copysign(select(arc.far, far, arc.s + arc.rest), x);
}

Value formula_acos(Value x) {
  const ArcSine arc = arc_sine(abs(x));
  const Value twice = 2 * arc.s;
  const Value beyond = difference(like(x, 2 * kHalfPi), twice, 2 * kHalfPiRest - 2 * arc.rest);
  const Value middle = difference(like(x, kHalfPi), x, kHalfPiRest - copysign(arc.rest, x));
  return select(arc.far, select(x < 0, beyond, twice + 2 * arc.rest), middle);
}

}  // namespace graft::ir
