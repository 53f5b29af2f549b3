// src/codegen/math/hyperbolic.cpp: hyperbolic functions and their inverses.
#include <limits>

#include "codegen/math/formulas.h"

namespace graft::ir {

namespace {

Value widen(Value x) { return cast(Type::kF64, x); }
// Rounds, and gives signed zeros their sign back.
Value narrow_odd(Value x, Value result) { return copysign(cast(Type::kF32, result), x); }

}  // namespace

Value formula_sinh(Value x) {
  const Value e = expm1_wide(widen(abs(x)));
  return narrow_odd(x, (e + e / (e + 1)) * 0.5);
}

Value formula_cosh(Value x) {
  const Value e = exp_wide(widen(x));
  return cast(Type::kF32, (e + 1 / e) * 0.5);
}

Value formula_tanh(Value x) {
  const Value magnitude = abs(x);
  const Value e = expm1_of_double(magnitude);
  return copysign(select(magnitude > 10, 1.0, e / (e + 2)), x);
}

Value formula_asinh(Value x) {
  const Value a = widen(abs(x));
  // Above 2^30 the second term is a, up to less than an ULP, and a * a may be infinite.
  const Value second = select(a > 0x1p30, a, a * a / (1 + sqrt(1 + a * a)));
  return narrow_odd(x, log1p_wide(a + second));
}

Value formula_acosh(Value x) {
  const Value a = widen(x) - 1;
  const Value result = log1p_wide(a + sqrt(a * (a + 2)));
  return cast(Type::kF32, select(a >= 0, result, std::numeric_limits<double>::quiet_NaN()));
}

Value formula_atanh(Value x) {
  const Value a = widen(abs(x));
  return narrow_odd(x, 0.5 * log1p_wide(2 * a / (1 - a)));
}

}  // namespace graft::ir
