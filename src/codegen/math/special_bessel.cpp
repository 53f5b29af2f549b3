// src/codegen/math/special_bessel.cpp: Bessel functions of orders 0 and 1, and Airy's.
#include <cmath>
#include <numbers>

#include "codegen/math/formulas.h"
#include "codegen/math/special_functions.h"
#include "codegen/math/special_series.h"

namespace graft::ir {

namespace {

constexpr double kTwoOverPi = 2 / std::numbers::pi;

using Series = std::span<const double>;

// exp(-m) I(m) for m >= 0, divided by m below 8 where the order is 1.
Value scaled_i(Value m, Series near, Series far, bool odd) {
  const Value small = chebyshev_series(m * 0.25 - 1, near);
  const Value large = chebyshev_series(16 / m - 1, far) / sqrt(m);
  return select(m <= 8, odd ? small * m : small, large);
}

Value i0e(Value m) { return scaled_i(m, kI0Near, kI0Far, false); }
Value i1e(Value m) { return scaled_i(m, kI1Near, kI1Far, true); }

// K and exp(x) K: below 2 from the logarithm, whose term is factor * log(x / 2).
Value k_function(Value x, Value near, Series far, bool scaled) {
  const Value tail = chebyshev_series(4 / x - 1, far) / sqrt(x);
  const Value large = scaled ? tail : exp(-x) * tail;
  const Value small = scaled ? exp(x) * near : near;
  const Value inside = select(x <= 2, small, large);
  return select(x == 0, kInfinity, select(x < 0, kNan, inside));
}

Value k0(Value x, bool scaled) {
  const Value t = x * x * 0.5 - 1;
  const Value near = chebyshev_series(t, kK0Near) - log(x * 0.5) * i0e(x) * exp(x);
  return k_function(x, near, kK0Far, scaled);
}

Value k1(Value x, bool scaled) {
  const Value t = x * x * 0.5 - 1;
  const Value near = chebyshev_series(t, kK1Near) / x + log(x * 0.5) * i1e(x) * exp(x);
  return k_function(x, near, kK1Far, scaled);
}

// What J and Y beyond 8 are made of: scale (p cos(phase) - q sin(phase)) and with sin, cos.
struct Wave {
  Value j, y;
};

// cosine, sine: of the phase.
Wave wave(Value m, Value cosine, Value sine, Series p_series, Series q_series) {
  const Value t = 128 / (m * m) - 1;
  const Value p = chebyshev_series(t, p_series), q = chebyshev_series(t, q_series) / m;
  const Value scale = sqrt(kTwoOverPi / m);
  return {scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)};
}

// The phase m - pi / 4 of order 0, m - 3 pi / 4 of order 1.
Wave wave0(Value m) {
  const Value c = cos(m) * std::numbers::sqrt2 * 0.5, s = sin(m) * std::numbers::sqrt2 * 0.5;
  return wave(m, c + s, s - c, kJ0P, kJ0Q);
}

Wave wave1(Value m) {
  const Value c = cos(m) * std::numbers::sqrt2 * 0.5, s = sin(m) * std::numbers::sqrt2 * 0.5;
  return wave(m, s - c, -(s + c), kJ1P, kJ1Q);
}

Value near_argument(Value m) { return m * m * (1.0 / 32) - 1; }

}  // namespace

Value chebyshev_series(Value t, std::span<const double> c) {
  const Value twice = t + t;
  Value b1 = like(t, c.back()), b2 = like(t, 0);
  for (size_t k = c.size() - 1; k-- > 1;) {
    const Value b0 = twice * b1 - b2 + c[k];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + c[0];
}

Value bessel_i0e(Value x) { return i0e(abs(x)); }
Value bessel_i0(Value x) { return exp(abs(x)) * i0e(abs(x)); }
Value bessel_i1e(Value x) { return copysign(i1e(abs(x)), x); }
Value bessel_i1(Value x) { return copysign(exp(abs(x)) * i1e(abs(x)), x); }
Value bessel_k0(Value x) { return k0(x, false); }
Value bessel_k0e(Value x) { return k0(x, true); }
Value bessel_k1(Value x) { return k1(x, false); }
Value bessel_k1e(Value x) { return k1(x, true); }

Value bessel_j0(Value x) {
  const Value m = abs(x);
  return select(m <= 8, chebyshev_series(near_argument(m), kJ0Near), wave0(m).j);
}

Value bessel_j1(Value x) {
  const Value m = abs(x);
  const Value far = wave1(m).j;
  return select(m <= 8, x * chebyshev_series(near_argument(m), kJ1Near), select(x < 0, -far, far));
}

Value bessel_y0(Value x) {
  const Value t = near_argument(x);
  const Value near =
      chebyshev_series(t, kY0Near) + kTwoOverPi * log(x) * chebyshev_series(t, kJ0Near);
  const Value inside = select(x <= 8, near, wave0(x).y);
  return select(x == 0, -kInfinity, select(x < 0, kNan, inside));
}

Value bessel_y1(Value x) {
  const Value t = near_argument(x);
  const Value singular = log(x) * x * chebyshev_series(t, kJ1Near) - 1 / x;
  const Value near = x * chebyshev_series(t, kY1Near) + kTwoOverPi * singular;
  const Value inside = select(x <= 8, near, wave1(x).y);
  return select(x == 0, -kInfinity, select(x < 0, kNan, inside));
}

// sin(x) / x loses nothing but at 0 itself.
Value spherical_bessel_j0(Value x) { return select(is_inf(x), 0, select(x == 0, 1, sin(x) / x)); }

Value airy_ai(Value x) {
  const Value m = abs(x), z = m * sqrt(m) * (2.0 / 3), root = sqrt(sqrt(m));
  const Value near = chebyshev_series((x + 1.25) * (1 / 3.75), kAiryNear);
  const Value decay = exp(-z) * chebyshev_series(5 / z - 1, kAiryDecay) / (root * 2) *
                      (1 / std::sqrt(std::numbers::pi));
  const Value t = 98 / (z * z) - 1;
  const Value p = chebyshev_series(t, kAiryP), q = chebyshev_series(t, kAiryQ) / z;
  const Value phase = z + std::numbers::pi / 4;
  const Value oscillating =
      (p * sin(phase) - q * cos(phase)) / root * (1 / std::sqrt(std::numbers::pi));
  const Value result = select(x > 2.5, decay, select(x < -5, oscillating, near));
  return select(is_inf(x), kNan, result);
}

}  // namespace graft::ir
