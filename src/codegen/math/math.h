// src/codegen/math/math.h: the definitions of the mathematical functions, once for all dialects.
#pragma once

#include <limits>

#include "codegen/ir/builder.h"
#include "codegen/ir/ir.h"

namespace graft::ir {

// Without a branch or a table: they run in vectors. Special values give what C's functions give.
// Largest errors in ULP of float32, to which tests/codegen/math/math_test.cpp holds each:
//   exp, sin, cos 1.5, expm1, log1p 2, erf, tanh 3, every other one 1.0, on every x86-64 level;
//   exp gives 0 where the result is below 2^-126; sin, cos and tan up to largest_argument();
//   digamma 1e-6 relative to max(1, |result|). It and those from zeta on take float64, too;
//   lgamma 1 ULP or, at its roots below 0, 1e-11.
// pow of integers wraps; a negative exponent gives 0, but of 1 and -1.

// Whether define() knows it.
bool is_defined(Math function, Type type);

// Up to which |x| a f32 definition holds its bound; Dialect::far_math goes beyond.
inline constexpr double kLargestAngle = 0x1p17;
inline double largest_argument(Math function) {
  const bool is_angle = function >= Math::k_sin && function <= Math::k_tan;
  if (is_angle) return kLargestAngle;
  return std::numeric_limits<double>::infinity();
}

// The function as a kernel whose result is of the type, named "graft_<function>_<type>".
Kernel define(Math function, Type type);

// Conversions between stored half types (u16) and f32, named "graft_f32_from_<dtype>" and
// "graft_<dtype>_from_f32": round to nearest even, NaN stays NaN. REQUIRES: a half type.
Kernel define_load(graft_dtype dtype);
Kernel define_store(graft_dtype dtype);

// The f32 value as the nearest number of the half type, as storing and loading it gives.
Value rounded_to(graft_dtype dtype, Value value);

}  // namespace graft::ir
