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
constexpr uint8_t kNumbers = kIntegerTypes | kFloatTypes;
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

template <C (*function)(C)>
Results wide(In x) {
  return narrowed(x[0].type(), function(widened(C::of(x, 0))));
}

constexpr int kHalfSign = -32768;  // as i16

const Op kRows[] = {
    {"positive", 1, 0, 1, kRealTypes | kComplexTypes, 0, "_to_copy.default(self,dtype,layout,device,pin_memory,non_blocking,memory_format) clone.default(self,memory_format) lift_fresh_copy.default(self)", [](In x, In) { return x[0]; },
     [](In x, In) -> Results { return C::of(x, 0); }, [](In x, In) { return x[0]; }},
    {"to_bool", 1, 0, 1, kRealTypes | kComplexTypes, 0, "",
     [](In x, In) { return cast(ir::Type::kBool, x[0]); },
     [](In x, In) { return (x[0] != 0) | (x[1] != 0); }},
    {"conj", 1, 0, 1, kRealTypes | kComplexTypes, 0, "conj_physical_stub",
     [](In x, In) { return x[0]; },
     [](In x, In) -> Results { return {x[0], -x[1]}; }},
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
    {"exp", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "exp_stub .",
     [](In x, In) { return exp(x[0]); },
     [](In x, In) { return wide<complex_exp>(x); }},
    {"exp2", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "exp2_stub .",
     [](In x, In) { return exp2(x[0]); },
     [](In x, In) { return wide<complex_exp2>(x); }},
    {"expm1", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "expm1_stub .",
     [](In x, In) { return expm1(x[0]); },
     [](In x, In) { return wide<complex_expm1>(x); }},
    {"log", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "log_stub .",
     [](In x, In) { return log(x[0]); },
     [](In x, In) { return wide<complex_log>(x); }},
    {"log2", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "log2_stub .",
     [](In x, In) { return log2(x[0]); },
     [](In x, In) { return wide<complex_log2>(x); }},
    {"log10", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "log10_stub .",
     [](In x, In) { return log10(x[0]); },
     [](In x, In) { return wide<complex_log10>(x); }},
    {"log1p", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "log1p_stub .",
     [](In x, In) { return log1p(x[0]); },
     [](In x, In) { return wide<complex_log1p>(x); }},
    {"sqrt", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "sqrt_stub .",
     [](In x, In) { return sqrt(x[0]); },
     [](In x, In) { return wide<complex_sqrt>(x); }},
    {"rsqrt", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "rsqrt_stub .",
     [](In x, In) { return rsqrt(x[0]); },
     [](In x, In) { return wide<complex_rsqrt>(x); }},
    {"reciprocal", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "reciprocal_stub .",
     [](In x, In) { return 1 / x[0]; },
     [](In x, In) -> Results {
       return C{like(x[0], 1), like(x[0], 0)} / C::of(x, 0);
     }},
    {"square", 1, 0, 1, kNumbers | kComplexTypes, 0, "", [](In x, In) { return x[0] * x[0]; },
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 0); }},
    {"cube", 1, 0, 1, kNumbers | kComplexTypes, 0, "",
     [](In x, In) { return x[0] * x[0] * x[0]; },
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 0) * C::of(x, 0); }},
    {"sin", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "sin_stub .",
     [](In x, In) { return sin(x[0]); },
     [](In x, In) { return wide<complex_sin>(x); }},
    {"cos", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "cos_stub .",
     [](In x, In) { return cos(x[0]); },
     [](In x, In) { return wide<complex_cos>(x); }},
    {"tan", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "tan_stub .",
     [](In x, In) { return tan(x[0]); },
     [](In x, In) { return wide<complex_tan>(x); }},
    {"asin", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "asin_stub .",
     [](In x, In) { return asin(x[0]); },
     [](In x, In) { return wide<complex_asin>(x); }},
    {"acos", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "acos_stub .",
     [](In x, In) { return acos(x[0]); },
     [](In x, In) { return wide<complex_acos>(x); }},
    {"atan", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "atan_stub .",
     [](In x, In) { return atan(x[0]); },
     [](In x, In) { return wide<complex_atan>(x); }},
    {"sinh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "sinh_stub .",
     [](In x, In) { return sinh(x[0]); },
     [](In x, In) { return wide<complex_sinh>(x); }},
    {"cosh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "cosh_stub .",
     [](In x, In) { return cosh(x[0]); },
     [](In x, In) { return wide<complex_cosh>(x); }},
    {"tanh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "tanh_stub .",
     [](In x, In) { return tanh(x[0]); },
     [](In x, In) { return wide<complex_tanh>(x); }},
    {"asinh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "asinh_stub .",
     [](In x, In) { return asinh(x[0]); },
     [](In x, In) { return wide<complex_asinh>(x); }},
    {"acosh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "acosh_stub .",
     [](In x, In) { return acosh(x[0]); },
     [](In x, In) { return wide<complex_acosh>(x); }},
    {"atanh", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "atanh_stub .",
     [](In x, In) { return atanh(x[0]); },
     [](In x, In) { return wide<complex_atanh>(x); }},
    {"erf", 1, 0, 1, kFloatTypes, 0, "erf_stub .", [](In x, In) { return erf(x[0]); }},
    {"erfc", 1, 0, 1, kFloatTypes, 0, "erfc_stub .", [](In x, In) { return erfc(x[0]); }},
    {"erfinv", 1, 0, 1, kFloatTypes, 0, "erfinv_stub .",
     [](In x, In) { return ir::erf_inverse(x[0]); }},
    {"lgamma", 1, 0, 1, kFloatTypes, 0, "lgamma_stub .", [](In x, In) { return lgamma(x[0]); }},
    {"digamma", 1, 0, 1, kFloatTypes, 0, "digamma_stub .",
     [](In x, In) { return digamma(x[0]); }},
    {"sigmoid", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "sigmoid_stub .",
     [](In x, In) { return sigmoid(x[0]); },
     [](In x, In) { return wide<complex_sigmoid>(x); }},
    {"logit", 1, 1, 1, kFloatTypes, 0, "logit_stub",
     [](In x, In s) { return logit(x[0], s[0]); }},
    {"sinc", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "sinc_stub",
     [](In x, In) { return sinc(x[0]); },
     [](In x, In) { return wide<complex_sinc>(x); }},
    {"entr", 1, 0, 1, kFloatTypes, 0, "special_entr_stub",
     [](In x, In) {
       const Value value = select(x[0] > 0, -x[0] * log(x[0]), select(x[0] == 0, 0, -kInfinity * abs(x[0])));
       return select(is_nan(x[0]), x[0], value);
     }},
    {"floor", 1, 0, 1, kFloatTypes, 0, "floor_stub .", [](In x, In) { return floor(x[0]); }},
    {"ceil", 1, 0, 1, kFloatTypes, 0, "ceil_stub .", [](In x, In) { return ceil(x[0]); }},
    {"round", 1, 0, 1, kFloatTypes, 0, "round_stub .", [](In x, In) { return round(x[0]); }},
    {"round_decimals", 1, 1, 1, kFloatTypes, 0, "round_decimals_stub",
     [](In x, In s) { return round_decimals(x[0], s[0]); }},
    {"trunc", 1, 0, 1, kFloatTypes, 0, "trunc_stub .", [](In x, In) { return trunc(x[0]); }},
    {"frac", 1, 0, 1, kFloatTypes, 0, "frac_stub",
     [](In x, In) { return x[0] - trunc(x[0]); }},
    {"sign", 1, 0, 1, kRealTypes, 0, "sign_stub .", [](In x, In) { return sign(x[0]); }},
    {"sgn", 1, 0, 1, kRealTypes | kComplexTypes, 0, "sgn_stub",
     [](In x, In) { return sign(x[0]); },
     [](In x, In) -> Results {
       const Value length = hypot(x[0], x[1]), zero = length == 0;
       return {select(zero, 0, x[0] / length), select(zero, 0, x[1] / length)};
     }},
    {"signbit", 1, 0, 1, kRealTypes, 0, "signbit_stub",
     [](In x, In) { return sign_bit(x[0]); }},
    {"isnan", 1, 0, 1, kRealTypes | kGivesBool, 0, ".", [](In x, In) { return is_nan(x[0]); }},
    {"isinf", 1, 0, 1, kRealTypes | kGivesBool, 0, ".", [](In x, In) { return is_inf(x[0]); }},
    {"isposinf", 1, 0, 1, kFloatTypes, 0, "isposinf_stub",
     [](In x, In) { return x[0] == kInfinity; }},
    {"isneginf", 1, 0, 1, kFloatTypes, 0, "isneginf_stub",
     [](In x, In) { return x[0] == -kInfinity; }},
    {"nan_to_num", 1, 3, 1, kFloatTypes, 0, "",
     [](In x, In s) { return nan_to_num(x[0], s); }},
    {"bitwise_not", 1, 0, 1, kBoolType | kIntegerTypes, 0, "bitwise_not_stub .",
     [](In x, In) { return ~x[0]; }},
    {"logical_not", 1, 0, 1, kRealTypes | kComplexTypes | kGivesBool, 0, "logical_not_stub .",
     [](In x, In) { return x[0].type() == ir::Type::kBool ? !x[0] : x[0] == 0; },
     [](In x, In) { return (x[0] == 0) & (x[1] == 0); }},
};

}  // namespace

std::span<const Op> unary_ops() { return kRows; }

}  // namespace graft
