// src/codegen/ops/op_table_unary.cpp: rows of the op table: functions of one number.
#include <limits>
#include <numbers>

#include "codegen/math/special_functions.h"
#include "codegen/ops/complex_functions.h"
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using ir::Value;
using C = ComplexValue;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value sign(Value a) {
  if (a.type() == ir::Type::kBool) return a;
  const Value positive = select(a > 0, like(a, 1), 0);
  if (!ir::is_signed(a.type())) return positive;
  return select(a < 0, -1, positive);  // 0 for NaN, as PyTorch has it
}

Value sign_bit(Value a) {
  if (!ir::is_signed(a.type())) return a.builder().boolean(false);
  return ir::is_float(a.type()) ? copysign(like(a, 1), a) < 0 : a < 0;
}

Value logit(Value a, Value eps) {
  // The lower bound counts where it is above the upper one, as PyTorch has it for eps > 0.5.
  const Value high = 1 - eps;
  const Value bounded = select(eps < 0, a, select(a < eps, eps, select(a > high, high, a)));
  return log(bounded / (1 - bounded));
}

Value sinc(Value a) {
  const Value angle = a * std::numbers::pi;
  return select(a == 0, 1, sin(angle) / angle);
}

Value round_decimals(Value a, Value decimals) {
  const Value scale = pow(like(a, 10), abs(decimals));
  return select(decimals < 0, round(a / scale) * scale, round(a * scale) / scale);
}

Value nan_to_num(Value a, In s) {
  return select(is_nan(a), s[0], select(a == kInfinity, s[1], select(a == -kInfinity, s[2], a)));
}

// A function of floating numbers, and the one of complex numbers that they are computed with.
template <Value (*function)(Value), C (*complex_function)(C)>
constexpr Op floating(const char* name, const char* aten) {
  Op row = {name, 1, 0, 1, kFloatTypes | kComplexTypes, 0, aten, calls<function>()};
  row.complex_formula = calls_wide_complex<complex_function>();
  return row;
}

constexpr int kHalfSign = -32768;  // as i16

const Op kRows[] = {
    {"positive", 1, 0, 1, kRealTypes | kComplexTypes, 0,
     "_to_copy.default(self,dtype,layout,device,pin_memory,non_blocking,memory_format) "
     "clone.default(self,memory_format) lift_fresh_copy.default(self)",
     [](In x, In) { return x[0]; }, [](In x, In) -> Results { return C::of(x, 0); },
     [](In x, In) { return x[0]; }},
    {"to_bool", 1, 0, 1, kRealTypes | kComplexTypes, 0, "",
     [](In x, In) { return cast(ir::Type::kBool, x[0]); },
     [](In x, In) { return (x[0] != 0) | (x[1] != 0); }},
    {"conj", 1, 0, 1, kRealTypes | kComplexTypes, 0, "conj_physical_stub",
     [](In x, In) { return x[0]; }, [](In x, In) -> Results { return conjugate(C::of(x, 0)); }},
    {"neg", 1, 0, 1, kNumbers | kComplexTypes, 0, "neg_stub .", [](In x, In) { return -x[0]; },
     [](In x, In) -> Results { return -C::of(x, 0); },
     [](In x, In) { return x[0] ^ like(x[0], kHalfSign); }},
    {"abs", 1, 0, 1, kNumbers | kComplexTypes, 0, "abs_stub .", [](In x, In) { return abs(x[0]); },
     [](In x, In) { return hypot(x[0], x[1]); },
     [](In x, In) { return x[0] & like(x[0], ~kHalfSign); }},
    {"angle", 1, 0, 1, kRealTypes | kComplexTypes, 0, "angle_stub",
     [](In x, In) {
       if (!ir::is_float(x[0].type())) return sign_bit(x[0]);
       return select(is_nan(x[0]), x[0], select(x[0] < 0, like(x[0], std::numbers::pi), 0));
     },
     [](In x, In) { return atan2(x[1], x[0]); }},
    floating<ir::exp, complex_exp>("exp", "exp_stub ."),
    floating<ir::exp2, complex_exp2>("exp2", "exp2_stub ."),
    floating<ir::expm1, complex_expm1>("expm1", "expm1_stub ."),
    floating<ir::log, complex_log>("log", "log_stub ."),
    floating<ir::log2, complex_log2>("log2", "log2_stub ."),
    floating<ir::log10, complex_log10>("log10", "log10_stub ."),
    floating<ir::log1p, complex_log1p>("log1p", "log1p_stub ."),
    floating<ir::sqrt, complex_sqrt>("sqrt", "sqrt_stub ."),
    floating<ir::rsqrt, complex_rsqrt>("rsqrt", "rsqrt_stub ."),
    {"reciprocal", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "reciprocal_stub .",
     [](In x, In) { return 1 / x[0]; },
     [](In x, In) -> Results {
       return C{like(x[0], 1), like(x[0], 0)} / C::of(x, 0);
     }},
    {"square", 1, 0, 1, kNumbers | kComplexTypes, 0, "", [](In x, In) { return x[0] * x[0]; },
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 0); }},
    {"cube", 1, 0, 1, kNumbers | kComplexTypes, 0, "", [](In x, In) { return x[0] * x[0] * x[0]; },
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 0) * C::of(x, 0); }},
    floating<ir::sin, complex_sin>("sin", "sin_stub ."),
    floating<ir::cos, complex_cos>("cos", "cos_stub ."),
    floating<ir::tan, complex_tan>("tan", "tan_stub ."),
    floating<ir::asin, complex_asin>("asin", "asin_stub ."),
    floating<ir::acos, complex_acos>("acos", "acos_stub ."),
    floating<ir::atan, complex_atan>("atan", "atan_stub ."),
    floating<ir::sinh, complex_sinh>("sinh", "sinh_stub ."),
    floating<ir::cosh, complex_cosh>("cosh", "cosh_stub ."),
    floating<ir::tanh, complex_tanh>("tanh", "tanh_stub ."),
    floating<ir::asinh, complex_asinh>("asinh", "asinh_stub ."),
    floating<ir::acosh, complex_acosh>("acosh", "acosh_stub ."),
    floating<ir::atanh, complex_atanh>("atanh", "atanh_stub ."),
    {"erf", 1, 0, 1, kFloatTypes, 0, "erf_stub .", calls<ir::erf>()},
    {"erfc", 1, 0, 1, kFloatTypes, 0, "erfc_stub .", calls<ir::erfc>()},
    {"erfinv", 1, 0, 1, kFloatTypes, 0, "erfinv_stub .", calls<ir::erf_inverse>()},
    {"lgamma", 1, 0, 1, kFloatTypes, 0, "lgamma_stub .", calls<ir::lgamma>()},
    {"digamma", 1, 0, 1, kFloatTypes, 0, "digamma_stub .", calls<ir::digamma>()},
    floating<ir::sigmoid, complex_sigmoid>("sigmoid", "sigmoid_stub ."),
    {"logit", 1, 1, 1, kFloatTypes, 0, "logit_stub", calls<logit>()},
    floating<sinc, complex_sinc>("sinc", "sinc_stub"),
    {"entr", 1, 0, 1, kFloatTypes, 0, "special_entr_stub",
     [](In x, In) {
       const Value value =
           select(x[0] > 0, -x[0] * log(x[0]), select(x[0] == 0, 0, -kInfinity * abs(x[0])));
       return select(is_nan(x[0]), x[0], value);
     }},
    {"floor", 1, 0, 1, kFloatTypes, 0, "floor_stub .", calls<ir::floor>()},
    {"ceil", 1, 0, 1, kFloatTypes, 0, "ceil_stub .", calls<ir::ceil>()},
    {"round", 1, 0, 1, kFloatTypes, 0, "round_stub .", calls<ir::round>()},
    {"round_decimals", 1, 1, 1, kFloatTypes, 0, "round_decimals_stub", calls<round_decimals>()},
    {"trunc", 1, 0, 1, kFloatTypes, 0, "trunc_stub .", calls<ir::trunc>()},
    {"frac", 1, 0, 1, kFloatTypes, 0, "frac_stub", [](In x, In) { return x[0] - trunc(x[0]); }},
    {"sign", 1, 0, 1, kRealTypes, 0, "sign_stub .", calls<sign>()},
    {"sgn", 1, 0, 1, kRealTypes | kComplexTypes, 0, "sgn_stub", [](In x, In) { return sign(x[0]); },
     [](In x, In) -> Results {
       const Value length = hypot(x[0], x[1]), zero = length == 0;
       return {select(zero, 0, x[0] / length), select(zero, 0, x[1] / length)};
     }},
    {"signbit", 1, 0, 1, kRealTypes, 0, "signbit_stub", calls<sign_bit>()},
    {"isnan", 1, 0, 1, kRealTypes | kGivesBool, 0, ".", calls<ir::is_nan>()},
    {"isinf", 1, 0, 1, kRealTypes | kGivesBool, 0, ".", calls<ir::is_inf>()},
    {"isposinf", 1, 0, 1, kFloatTypes, 0, "isposinf_stub",
     [](In x, In) { return x[0] == kInfinity; }},
    {"isneginf", 1, 0, 1, kFloatTypes, 0, "isneginf_stub",
     [](In x, In) { return x[0] == -kInfinity; }},
    {"nan_to_num", 1, 3, 1, kFloatTypes, 0, "", [](In x, In s) { return nan_to_num(x[0], s); }},
    {"bitwise_not", 1, 0, 1, kBoolType | kIntegerTypes, 0, "bitwise_not_stub .",
     [](In x, In) { return ~x[0]; }},
    {"logical_not", 1, 0, 1, kRealTypes | kComplexTypes | kGivesBool, 0, "logical_not_stub .",
     [](In x, In) { return x[0].type() == ir::Type::kBool ? !x[0] : x[0] == 0; },
     [](In x, In) { return (x[0] == 0) & (x[1] == 0); }},
};

}  // namespace

std::span<const Op> unary_ops() { return kRows; }

}  // namespace graft
