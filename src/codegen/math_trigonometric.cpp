// src/codegen/math_trigonometric.cpp: trigonometric functions and their inverses.
// Polynomials: tools/fit_polynomials.py.
#include <limits>
#include <numbers>

#include "codegen/math_formulas.h"

namespace graft::ir {

namespace {

constexpr double kPi = std::numbers::pi;

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

Value formula_atan(Value x) { return formula_atan2(x, like(x, 1)); }

Value formula_asin(Value x) {
  const Value a = widen(x);
  return copysign(narrow(upper_angle(abs(a), sqrt((1 - a) * (1 + a)))), x);
}

Value formula_acos(Value x) {
  const Value a = widen(x);
  return narrow(upper_angle(sqrt((1 - a) * (1 + a)), a));
}

}  // namespace graft::ir
