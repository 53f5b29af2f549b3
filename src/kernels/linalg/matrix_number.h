// src/kernels/linalg/matrix_number.h: what kernels of linear algebra ask of real and of complex
// numbers.
#pragma once

#include <functional>
#include <type_traits>

#include "codegen/ops/complex_value.h"
#include "runtime/driver/dtype.h"

namespace graft {

// The same functions for both, so that a kernel is one template over Number: ir::Value or
// ComplexValue. Real numbers are their own conjugates.
using ir::Value;

inline Value conjugate(Value x) { return x; }
inline Value real_part(Value x) { return x; }
inline Value real_part(ComplexValue z) { return z.re; }
inline Value is_zero(Value x) { return x == 0; }

// What LAPACK compares to find a pivot.
inline Value pivot_size(Value x) { return abs(x); }
inline Value pivot_size(ComplexValue z) { return abs(z.re) + abs(z.im); }

// The greater of its parts, which no number of the type overflows; NaN where it holds one.
inline Value greatest_part(Value x) { return abs(x); }
inline Value greatest_part(ComplexValue z) { return ir::maximum(abs(z.re), abs(z.im)); }

// Of its magnitude.
inline Value square(Value x) { return x * x; }
inline Value square(ComplexValue z) { return z.re * z.re + z.im * z.im; }

inline Value number_like(Value x, double number) { return like(x, number); }
inline ComplexValue number_like(ComplexValue z, double number) {
  return {like(z.re, number), like(z.re, 0)};
}

inline Value over_real(Value x, Value divisor) { return x / divisor; }
inline ComplexValue over_real(ComplexValue z, Value divisor) {
  return {z.re / divisor, z.im / divisor};
}

// The real number as a Number.
inline Value from_real(Value, Value real) { return real; }
inline ComplexValue from_real(ComplexValue, Value real) { return {real, like(real, 0)}; }

// Element number element of memory that holds the parts of numbers.
template <class Number>
Number load_number(const ir::Address& parts, Value element, bool conjugated = false) {
  if constexpr (std::is_same_v<Number, ComplexValue>) {
    const ComplexValue z{parts.load(element * 2), parts.load(element * 2 + 1)};
    return conjugated ? conjugate(z) : z;
  } else {
    return parts.load(element);
  }
}
inline void store_number(const ir::Address& parts, Value element, Value x) {
  parts.store(element, x);
}
inline void store_number(const ir::Address& parts, Value element, ComplexValue z) {
  parts.store(element * 2, z.re);
  parts.store(element * 2 + 1, z.im);
}

// The sum of term(i) for begin <= i < end, of the kind of zero.
template <class Term>
Value sum_of(Value zero, Value begin, Value end, Term term) {
  return ir::reduce(zero, begin, end, term, std::plus<>(), 16);
}
template <class Term>
ComplexValue sum_of(ComplexValue zero, Value begin, Value end, Term term) {
  const auto sums = ir::fold(
      {zero.re, zero.im}, begin, end,
      [&](const ir::Values& sum, Value i) -> ir::Values {
        const ComplexValue z = term(i);
        return {sum[0] + z.re, sum[1] + z.im};
      },
      [](const ir::Values& x, const ir::Values& y) -> ir::Values {
        return {x[0] + y[0], x[1] + y[1]};
      },
      16);
  return {sums[0], sums[1]};
}

}  // namespace graft
