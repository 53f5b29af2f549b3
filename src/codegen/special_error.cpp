// src/codegen/special_error.cpp: relatives of the error function.
#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/math_formulas.h"
#include "codegen/special_functions.h"
#include "codegen/special_series.h"

namespace graft::ir {

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
  const double infinity = std::numeric_limits<double>::infinity();
  const Value inside = select(p > 0.5, y, -y);
  const Value edge =
      select(p == 0, like(p, -infinity),
             select(p == 1, like(p, infinity), std::numeric_limits<double>::quiet_NaN()));
  return select((p > 0) & (p < 1), inside, edge);
}

}  // namespace graft::ir
