// src/codegen/ops/complex_functions.h: elementary functions of complex numbers.
#pragma once

#include "codegen/ops/complex_value.h"

namespace graft {

// In terms of real functions, after Kahan, "Branch cuts for complex elementary functions", 1987;
// branch cuts and signed zeros are C's. Parts of any floating type; compute in f64 for float32's
// accuracy. Infinite parts give what C gives where one of the parts is 0.
ComplexValue complex_exp(ComplexValue z);
ComplexValue complex_expm1(ComplexValue z);
ComplexValue complex_exp2(ComplexValue z);
ComplexValue complex_log(ComplexValue z);
ComplexValue complex_log2(ComplexValue z);
ComplexValue complex_log10(ComplexValue z);
ComplexValue complex_log1p(ComplexValue z);
ComplexValue complex_sqrt(ComplexValue z);
ComplexValue complex_rsqrt(ComplexValue z);
ComplexValue complex_pow(ComplexValue a, ComplexValue b);  // exp(b log a), as C's cpow
ComplexValue complex_sigmoid(ComplexValue z);
ComplexValue complex_sinc(ComplexValue z);
ComplexValue complex_log_add_exp(ComplexValue a, ComplexValue b);  // log(exp(a) + exp(b))
ComplexValue complex_sin(ComplexValue z);
ComplexValue complex_cos(ComplexValue z);
ComplexValue complex_tan(ComplexValue z);
ComplexValue complex_sinh(ComplexValue z);
ComplexValue complex_cosh(ComplexValue z);
ComplexValue complex_tanh(ComplexValue z);
ComplexValue complex_asin(ComplexValue z);
ComplexValue complex_acos(ComplexValue z);
ComplexValue complex_atan(ComplexValue z);
ComplexValue complex_asinh(ComplexValue z);
ComplexValue complex_acosh(ComplexValue z);
ComplexValue complex_atanh(ComplexValue z);

// The formula that calls such a function in f64 with the inputs, then the scalars, and rounds once.
template <auto function>
constexpr Formula calls_wide_complex() {
  return [](In x, In s) {
    const auto operand = [&](size_t i) {
      const size_t inputs = x.size() / 2;
      return i < inputs ? ComplexValue::of(x, i) : ComplexValue::of(s, i - inputs);
    };
    return [&]<size_t... i>(std::index_sequence<i...>)->Results {
      return narrowed(x[0].type(), function(widened(operand(i))...));
    }
    (std::make_index_sequence<arity(function)>());
  };
}

}  // namespace graft
