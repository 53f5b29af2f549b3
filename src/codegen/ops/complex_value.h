// src/codegen/ops/complex_value.h: complex numbers as pairs of values.
#pragma once

#include "codegen/ops/op_table.h"

namespace graft {

// Arithmetic of PyTorch's complex numbers; a formula takes number i of its list as of(x, i).
struct ComplexValue {
  ir::Value re, im;

  static ComplexValue of(In x, size_t i) { return {x[2 * i], x[2 * i + 1]}; }
  operator Results() const { return {re, im}; }
};

inline ComplexValue operator+(ComplexValue a, ComplexValue b) { return {a.re + b.re, a.im + b.im}; }
inline ComplexValue operator-(ComplexValue a, ComplexValue b) { return {a.re - b.re, a.im - b.im}; }
inline ComplexValue operator*(ComplexValue a, ComplexValue b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline ComplexValue operator-(ComplexValue a) { return {-a.re, -a.im}; }

// Smith's method: the larger part of the divisor is divided out first, so that squares of large
// numbers do not overflow.
inline ComplexValue operator/(ComplexValue a, ComplexValue b) {
  const ir::Value wide = abs(b.re) >= abs(b.im);
  const ir::Value large = select(wide, b.re, b.im), small = select(wide, b.im, b.re);
  const ir::Value ratio = select(large == 0, large, small / large);
  const ir::Value scale = 1 / (large + small * ratio);
  const ir::Value re = select(wide, a.re + a.im * ratio, a.re * ratio + a.im);
  const ir::Value im = select(wide, a.im - a.re * ratio, a.im * ratio - a.re);
  return {re * scale, im * scale};
}

inline ComplexValue operator+(double a, ComplexValue b) { return {a + b.re, b.im}; }
inline ComplexValue operator-(double a, ComplexValue b) { return {a - b.re, -b.im}; }
inline ComplexValue operator*(ComplexValue a, double b) { return {a.re * b, a.im * b}; }
inline ComplexValue conjugate(ComplexValue z) { return {z.re, -z.im}; }
inline ComplexValue select(ir::Value condition, ComplexValue a, ComplexValue b) {
  return {select(condition, a.re, b.re), select(condition, a.im, b.im)};
}
inline ir::Value is_zero(ComplexValue z) { return (z.re == 0) & (z.im == 0); }

// To compute in f64 and round once.
inline ComplexValue widened(ComplexValue z) {
  return {cast(ir::Type::kF64, z.re), cast(ir::Type::kF64, z.im)};
}
inline ComplexValue narrowed(ir::Type type, ComplexValue z) {
  return {cast(type, z.re), cast(type, z.im)};
}

}  // namespace graft
