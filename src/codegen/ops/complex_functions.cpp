// src/codegen/ops/complex_functions.cpp: elementary functions of complex numbers.
#include "codegen/ops/complex_functions.h"

#include <cmath>
#include <numbers>

namespace graft {

namespace {

using ir::Value;
using C = ComplexValue;

// 0 times anything is 0.
Value scaled(Value factor, Value value) { return select(factor == 0, factor, factor * value); }

C turned(C z) { return {-z.im, z.re}; }       // i z
C turned_back(C z) { return {z.im, -z.re}; }  // -i z
C one(C z) { return {like(z.re, 1), like(z.re, 0)}; }
C shifted(C z, double by) { return {z.re + by, z.im}; }

}  // namespace

C complex_exp(C z) {
  const Value size = exp(z.re);
  return {scaled(size, cos(z.im)), select(z.im == 0, z.im, scaled(size, sin(z.im)))};
}

C complex_expm1(C z) {
  const Value half = sin(z.im * 0.5), size = exp(z.re);
  const Value re = expm1(z.re) * cos(z.im) - 2 * half * half;
  return {re, select(z.im == 0, z.im, scaled(size, sin(z.im)))};
}

C complex_log(C z) { return {log(hypot(z.re, z.im)), atan2(z.im, z.re)}; }

C complex_exp2(C z) { return complex_exp(z * std::numbers::ln2); }
C complex_log2(C z) { return complex_log(z) * (1 / std::numbers::ln2); }
C complex_log10(C z) { return complex_log(z) * (1 / std::numbers::ln10); }

C complex_log1p(C z) {
  const Value near = log1p(z.re * (z.re + 2) + z.im * z.im) * 0.5;
  const Value far = log(hypot(z.re + 1, z.im));
  const Value small = (abs(z.re) < 0.5) & (abs(z.im) < 0.5);
  return {select(small, near, far), atan2(z.im, z.re + 1)};
}

// Quarters, so that the sum does not overflow.
C complex_sqrt(C z) {
  const Value re = z.re * 0.25, im = z.im * 0.25;
  const Value large = sqrt(hypot(re, im) + abs(re)) * std::numbers::sqrt2;
  const Value small = select(large == 0, large, abs(z.im) * 0.5 / large);
  const Value left = z.re < 0, steep = is_inf(z.im);
  const Value real = select(left, small, large), imaginary = select(left, large, small);
  return {select(steep, abs(z.im), real), select(steep, z.im, copysign(imaginary, z.im))};
}

C complex_sinh(C z) {
  return {scaled(sinh(z.re), cos(z.im)), select(z.im == 0, z.im, cosh(z.re) * sin(z.im))};
}

C complex_cosh(C z) {
  return {cosh(z.re) * cos(z.im),
          select(z.im == 0, z.im * copysign(like(z.re, 1), z.re), scaled(sinh(z.re), sin(z.im)))};
}

// Beyond 20 the result is 1 but for the imaginary part, which is tiny.
C complex_tanh(C z) {
  const Value t = tan(z.im), s = sinh(z.re), slope = 1 + t * t, below = 1 + slope * s * s;
  const Value decay = exp(abs(z.re) * -2) * 4;
  const Value tail =
      select(is_inf(z.im), copysign(like(z.im, 0), z.im), decay * sin(z.im) * cos(z.im));
  const Value far = abs(z.re) > 20;
  return {select(far, copysign(like(z.re, 1), z.re), slope * cosh(z.re) * s / below),
          select(far, tail, t / below)};
}

C complex_sin(C z) { return turned_back(complex_sinh(turned(z))); }
C complex_cos(C z) { return complex_cosh(turned(z)); }
C complex_tan(C z) { return turned_back(complex_tanh(turned(z))); }

C complex_asin(C z) {
  const C below = complex_sqrt({1 - z.re, -z.im}), above = complex_sqrt(shifted(z, 1));
  return {atan2(z.re, (below * above).re), asinh((conjugate(below) * above).im)};
}

C complex_acos(C z) {
  const C below = complex_sqrt({1 - z.re, -z.im}), above = complex_sqrt(shifted(z, 1));
  return {2 * atan2(below.re, above.re), asinh((conjugate(above) * below).im)};
}

C complex_acosh(C z) {
  const C below = complex_sqrt(shifted(z, -1)), above = complex_sqrt(shifted(z, 1));
  return {asinh((conjugate(below) * above).re), 2 * atan2(below.im, above.re)};
}

C complex_atanh(C z) {
  const Value gap = 1 - z.re, square = z.im * z.im;
  const Value re = log1p(z.re * 4 / (gap * gap + square)) * 0.25;
  const C usual = {re, atan2(z.im * 2, gap * (1 + z.re) - square) * 0.5};
  const Value steep = copysign(like(z.im, std::numbers::pi / 2), z.im);
  const C far = {copysign(like(z.re, 0), z.re), select(is_nan(z.im), z.im, steep)};
  return select(is_inf(z.re) | is_inf(z.im), far, usual);
}

C complex_pow(C a, C b) { return complex_exp(b * complex_log(a)); }

C complex_rsqrt(C z) { return one(z) / complex_sqrt(z); }

C complex_sigmoid(C z) { return one(z) / (1 + complex_exp(-z)); }

C complex_sinc(C z) {
  const C angle = z * std::numbers::pi;
  return select(is_zero(z), one(z), complex_sin(angle) / angle);
}

// The larger real part is taken out of the sum; PyTorch's rules for NaN and infinite parts.
C complex_log_add_exp(C a, C b) {
  const Value swap = !(a.re < b.re);
  const C low = select(swap, b, a), high = select(swap, a, b);
  const C usual = high + complex_log1p(complex_exp(low - high));
  const C infinite = complex_log(complex_exp(low) + complex_exp(high));
  const Value meet = is_inf(low.re) & (low.re == high.re);
  const C finite = select(meet, select(low.re < 0, b, infinite), usual);
  const Value none = is_nan(a.re) | is_nan(a.im) | is_nan(b.re) | is_nan(b.im);
  const Value quiet = like(a.re, std::nan(""));
  return select(none, C{quiet, quiet}, finite);
}

C complex_asinh(C z) { return turned_back(complex_asin(turned(z))); }
C complex_atan(C z) { return turned_back(complex_atanh(turned(z))); }

}  // namespace graft
