// src/codegen/math/formulas.h: float32 functions in terms of the basic instructions.
#pragma once

#include <limits>

#include "codegen/ir/builder.h"

namespace graft::ir {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Each takes and gives f32; bounds and special values: math.h. Several compute in f64 inside, where
// one rounding at the end is cheaper than careful float32 arithmetic.

// exponential.cpp
Value formula_exp(Value x);
Value formula_exp2(Value x);
Value formula_expm1(Value x);
Value formula_log(Value x);
Value formula_log2(Value x);
Value formula_log10(Value x);
Value formula_log1p(Value x);
Value formula_pow(Value x, Value y);
Value formula_hypot(Value x, Value y);

// hyperbolic.cpp
Value formula_sinh(Value x);
Value formula_cosh(Value x);
Value formula_tanh(Value x);
Value formula_asinh(Value x);
Value formula_acosh(Value x);
Value formula_atanh(Value x);

// trigonometric.cpp
Value formula_sin(Value x);
Value formula_cos(Value x);
Value formula_tan(Value x);
Value formula_asin(Value x);
Value formula_acos(Value x);
Value formula_atan(Value x);
Value formula_atan2(Value y, Value x);

// special.cpp
Value formula_erf(Value x);
Value formula_erfc(Value x);

// gamma.cpp; digamma takes f64, too.
Value formula_digamma(Value x);
Value formula_lgamma(Value x);

// Building blocks. coefficients[0] + coefficients[1] x + ...
Value polynomial(Value x, std::initializer_list<double> coefficients);

// f32: exp(x) - 1 for -18 <= x <= 88.9.
Value expm1_bounded(Value x);

// f32: 2^x for |x| <= 125, any value beyond.
Value exp2_bounded(Value x);

// f32: 2^x - 1 for |x| <= 125 and exp(2 x) - 1 for |x| <= 43, any value beyond.
Value exp2m1_bounded(Value x);
Value expm1_of_double(Value x);

// f32: P(X > t) for a standard normal X and 0 <= t <= kTailEnd, any value beyond, where it is below
// 1.1e-8.
inline constexpr double kTailEnd = 5.6;
Value upper_tail(Value t);

// f64: exp(x) and exp(x) - 1 within 2^-38 of the result for |x| < 700; log(x) for x >= 0 within
// 2^-40, log(1 + x) for x >= -1.
Value exp_wide(Value x);
Value expm1_wide(Value x);
Value log_wide(Value x);
Value log1p_wide(Value x);

}  // namespace graft::ir
