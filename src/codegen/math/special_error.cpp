// src/codegen/math/special_error.cpp: relatives of the error function.
#include <cmath>
#include <numbers>

#include "codegen/math/formulas.h"
#include "codegen/math/special_functions.h"
#include "codegen/math/special_series.h"

namespace graft::ir {

namespace {

// erfinv(x) / x in the variables of Giles, "Approximating the erfinv function", 2011.
Value quick_erf_inverse(Value x) {
  const Value w = -log((1 - x) * (1 + x)), near = w - 2.5, far = sqrt(w) - 3;
  const Value low =
      polynomial(near, {1.5014093604503288, 0.24664027905463663, -0.0041773928752031487,
                        -0.0012527263917732291, 0.00021834938623976643, -4.9724196894547512e-6,
                        -3.4639852676333716e-6, 4.6813134805534122e-7, 2.3335967195708106e-8,
                        -8.9319259702442215e-9});
  const Value high = polynomial(
      far, {2.8329768070195414, 1.0016749120571993, 0.0094449921135278359, -0.0076364896366789045,
            0.0056892162943421661, -0.0036009003307526995, 0.001479703952923971,
            -5.0458852898084114e-5, -0.00030552505117411148, 0.00011153858077997951});
  return x * select(w < 5, low, high);
}

// A start from the logarithm (S. Winitzki, A handy approximation for the error function, 2008) and
// three steps of Halley's method.
Value exact_erf_inverse(Value x) {
  const Value l = log((1 - x) * (1 + x));
  const Value t = 4.3307467508 + 0.5 * l;
  Value y = copysign(sqrt(sqrt(t * t - l * 6.8027210884) - t), x);
  for (int step = 0; step < 3; ++step) {
    const Value error = erf(y) - x;
    const Value slope = (2 / std::sqrt(std::numbers::pi)) * exp(-y * y);
    y = y - error / (slope + y * error);
  }
  return select(x == 0, x, y);
}

}  // namespace

Value erf_inverse(Value x) {
  const bool wide = x.type() == Type::kF64;
  const Value inside = wide ? exact_erf_inverse(x) : quick_erf_inverse(x);
  const Value edge = select(abs(x) == 1, copysign(like(x, kInfinity), x), kNan);
  return select(abs(x) < 1, inside, edge);
}

// The variable of Shepherd and Laframboise, Mathematics of Computation 36, 1981.
Value erfcx(Value x) {
  const Value m = abs(x);
  const Value scaled = chebyshev_series(1 - 4 / (m + 2), kErfcx) / (1 + 2 * m);
  return select(x < 0, 2 * exp(x * x) - scaled, scaled);
}

Value log_ndtr(Value x) {
  const Value t = x * (std::numbers::sqrt2 / 2);
  const Value tail = log(erfcx(-t) * 0.5) - t * t;
  return select(x < -1, tail, log1p(erfc(t) * -0.5));
}

// A start from A. & S. 26.2.23, two of Halley's steps.
Value ndtri(Value p) {
  const Value q = select(p > 0.5, 1 - p, p);
  const Value t = sqrt(log(q) * -2);
  const Value upper = polynomial(t, {2.515517, 0.802853, 0.010328});
  const Value lower = polynomial(t, {1, 1.432788, 0.189269, 0.001308});
  Value y = t - upper / lower;
  for (int step = 0; step < 2; ++step) {
    const Value density = exp(y * y * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
    const Value error = (erfc(y * (std::numbers::sqrt2 / 2)) * 0.5 - q) / density;
    y = y + error / (1 - error * y * 0.5);
  }
  const Value inside = select(p > 0.5, y, -y);
  const Value edge = select(p == 0, like(p, -kInfinity), select(p == 1, like(p, kInfinity), kNan));
  return select((p > 0) & (p < 1), inside, edge);
}

}  // namespace graft::ir
