// src/codegen/ops/op_table_binary.cpp: rows of the op table: arithmetic, comparisons and bits of
// two.
#include <numbers>

#include "codegen/ops/complex_functions.h"
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using ir::Value;
using C = ComplexValue;
constexpr uint8_t kTests = kRealTypes | kGivesBool;

bool is_bool(Value a) { return a.type() == ir::Type::kBool; }

// On bool, + is or and * is and.
Value plus(Value a, Value b) { return is_bool(a) ? a | b : a + b; }
Value times(Value a, Value b) { return is_bool(a) ? a & b : a * b; }

Value truth(Value a) { return is_bool(a) ? a : a != 0; }
Value truth(C a) { return !is_zero(a); }

Value bits_of(Value a) { return like(a, ir::bytes_of(a.type()) * 8); }

// Amounts outside the type's bits shift everything out.
Value shift_left(Value a, Value amount) {
  const Value inside = (amount >= 0) & (amount < bits_of(a));
  return select(inside, a << select(inside, amount, 0), 0);
}

Value shift_right(Value a, Value amount) {
  const Value inside = (amount >= 0) & (amount < bits_of(a));
  const Value all = ir::is_signed(a.type()) ? a >> (bits_of(a) - 1) : like(a, 0);
  return select(inside, a >> select(inside, amount, 0), all);
}

Value truncated_quotient(Value a, Value b) { return ir::is_float(a.type()) ? trunc(a / b) : a / b; }

// log(exp(a) + exp(b)) without overflow; infinities of one sign stay.
Value log_add_exp(Value a, Value b) {
  const Value infinite = is_inf(a) & (a == b);
  const Value high = maximum(a, b);
  return select(infinite, a, high + log1p(exp(-abs(a - b))));
}

Value log_add_exp2(Value a, Value b) {
  const Value infinite = is_inf(a) & (a == b);
  const Value high = maximum(a, b);
  return select(infinite, a, high + log1p(exp2(-abs(a - b))) * (1 / std::numbers::ln2));
}

const Op kRows[] = {
    {"add", 2, 1, 1, kRealTypes | kComplexTypes, 0,
     "add_stub .Tensor(self,other,alpha=1) .Scalar(self,other,alpha=1)",
     [](In x, In s) { return plus(x[0], times(s[0], x[1])); },
     [](In x, In s) -> Results { return C::of(x, 0) + C::of(s, 0) * C::of(x, 1); }},
    {"sub", 2, 1, 1, kNumbers | kComplexTypes, 0,
     "sub_stub .Tensor(self,other,alpha=1) .Scalar(self,other,alpha=1) "
     "rsub.Scalar(1:self,0:other,alpha=1)",
     [](In x, In s) { return x[0] - s[0] * x[1]; },
     [](In x, In s) -> Results { return C::of(x, 0) - C::of(s, 0) * C::of(x, 1); }},
    // Without the factor: what most callers have.
    {"plain_add", 2, 0, 1, kRealTypes | kComplexTypes, 0,
     "add.Tensor(self,other,alpha=1) add.Scalar(self,other,alpha=1)", calls<plus>(),
     [](In x, In) -> Results { return C::of(x, 0) + C::of(x, 1); }},
    {"plain_sub", 2, 0, 1, kNumbers | kComplexTypes, 0,
     "sub.Tensor(self,other,alpha=1) sub.Scalar(self,other,alpha=1) "
     "rsub.Scalar(1:self,0:other,alpha=1)",
     [](In x, In) { return x[0] - x[1]; },
     [](In x, In) -> Results { return C::of(x, 0) - C::of(x, 1); }},
    {"mul", 2, 0, 1, kRealTypes | kComplexTypes, 0, "mul_stub .Tensor .Scalar", calls<times>(),
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 1); }},
    {"div", 2, 0, 1, kFloatTypes | kComplexTypes, 0, "div_true_stub .Tensor .Scalar",
     [](In x, In) { return x[0] / x[1]; },
     [](In x, In) -> Results { return C::of(x, 0) / C::of(x, 1); }},
    {"div_trunc", 2, 0, 1, kNumbers, 0, "div_trunc_stub", calls<truncated_quotient>()},
    {"div_floor", 2, 0, 1, kNumbers, 0, "div_floor_stub", calls<ir::floor_div>()},
    {"remainder", 2, 0, 1, kNumbers, 0, "remainder_stub .Tensor .Scalar", calls<ir::floor_mod>()},
    {"fmod", 2, 0, 1, kNumbers, 0, "fmod_stub .Tensor .Scalar",
     [](In x, In) { return ir::is_float(x[0].type()) ? fmod(x[0], x[1]) : x[0] % x[1]; }},
    {"pow", 2, 0, 1, kNumbers | kComplexTypes, 0, "pow_tensor_tensor_stub .Tensor_Tensor",
     calls<ir::pow>(), calls_wide_complex<complex_pow>()},
    {"pow_scalar", 1, 1, 1, kNumbers | kComplexTypes, 0, "pow_tensor_scalar_stub pow.Tensor_Scalar",
     calls<ir::pow>(), calls_wide_complex<complex_pow>()},
    {"maximum", 2, 0, 1, kRealTypes, 0, "maximum_stub max_elementwise_stub .",
     calls<ir::maximum>()},
    {"minimum", 2, 0, 1, kRealTypes, 0, "minimum_stub min_elementwise_stub .",
     calls<ir::minimum>()},
    {"fmax", 2, 0, 1, kRealTypes, 0, "fmax_stub .", calls<ir::fmax>()},
    {"fmin", 2, 0, 1, kRealTypes, 0, "fmin_stub .", calls<ir::fmin>()},
    {"atan2", 2, 0, 1, kFloatTypes, 0, "atan2_stub .", calls<ir::atan2>()},
    {"hypot", 2, 0, 1, kFloatTypes, 0, "hypot_stub .", calls<ir::hypot>()},
    {"copysign", 2, 0, 1, kFloatTypes, 0, "copysign_stub .Tensor", calls<ir::copysign>()},
    {"logaddexp", 2, 0, 1, kFloatTypes | kComplexTypes, 0, "logaddexp_stub", calls<log_add_exp>(),
     calls_wide_complex<complex_log_add_exp>()},
    {"logaddexp2", 2, 0, 1, kFloatTypes, 0, "logaddexp2_stub", calls<log_add_exp2>()},
    {"xlogy", 2, 0, 1, kFloatTypes, 0, "xlogy_stub",
     [](In x, In) { return select(is_nan(x[1]), x[1], select(x[0] == 0, 0, x[0] * log(x[1]))); }},
    {"xlog1py", 2, 0, 1, kFloatTypes, 0, "xlog1py_stub",
     [](In x, In) { return select(is_nan(x[1]), x[1], select(x[0] == 0, 0, x[0] * log1p(x[1]))); }},
    {"heaviside", 2, 0, 1, kRealTypes, 0, "heaviside_stub",
     [](In x, In) {
       const Value zero = is_bool(x[0]) ? !x[0] : x[0] == 0;
       if (is_bool(x[0])) return select(zero, x[1], x[0]);
       return select(zero, x[1], cast(x[0].type(), x[0] > 0));
     }},
    {"bitwise_and", 2, 0, 1, kBoolType | kIntegerTypes, 0, "bitwise_and_stub .Tensor",
     [](In x, In) { return x[0] & x[1]; }},
    {"bitwise_or", 2, 0, 1, kBoolType | kIntegerTypes, 0, "bitwise_or_stub .Tensor",
     [](In x, In) { return x[0] | x[1]; }},
    {"bitwise_xor", 2, 0, 1, kBoolType | kIntegerTypes, 0, "bitwise_xor_stub .Tensor",
     [](In x, In) { return x[0] ^ x[1]; }},
    {"shift_left", 2, 0, 1, kIntegerTypes, 0, "lshift_stub", calls<shift_left>()},
    {"shift_right", 2, 0, 1, kIntegerTypes, 0, "rshift_stub", calls<shift_right>()},
    {"logical_and", 2, 0, 1, kTests | kComplexTypes, 0, "logical_and_stub .",
     [](In x, In) { return truth(x[0]) & truth(x[1]); },
     [](In x, In) { return truth(C::of(x, 0)) & truth(C::of(x, 1)); }},
    {"logical_or", 2, 0, 1, kTests | kComplexTypes, 0, "logical_or_stub .",
     [](In x, In) { return truth(x[0]) | truth(x[1]); },
     [](In x, In) { return truth(C::of(x, 0)) | truth(C::of(x, 1)); }},
    {"logical_xor", 2, 0, 1, kTests | kComplexTypes, 0, "logical_xor_stub .",
     [](In x, In) { return truth(x[0]) ^ truth(x[1]); },
     [](In x, In) { return truth(C::of(x, 0)) ^ truth(C::of(x, 1)); }},
    {"eq", 2, 0, 1, kTests | kComplexTypes, 0, "eq_stub .Tensor .Scalar",
     [](In x, In) { return x[0] == x[1]; },
     [](In x, In) { return (x[0] == x[2]) & (x[1] == x[3]); }},
    {"ne", 2, 0, 1, kTests | kComplexTypes, 0, "ne_stub .Tensor .Scalar",
     [](In x, In) { return x[0] != x[1]; },
     [](In x, In) { return (x[0] != x[2]) | (x[1] != x[3]); }},
    {"lt", 2, 0, 1, kTests, 0, "lt_stub .Tensor .Scalar", [](In x, In) { return x[0] < x[1]; }},
    {"le", 2, 0, 1, kTests, 0, "le_stub .Tensor .Scalar", [](In x, In) { return x[0] <= x[1]; }},
    {"gt", 2, 0, 1, kTests, 0, "gt_stub .Tensor .Scalar", [](In x, In) { return x[0] > x[1]; }},
    {"ge", 2, 0, 1, kTests, 0, "ge_stub .Tensor .Scalar", [](In x, In) { return x[0] >= x[1]; }},
};

}  // namespace

std::span<const Op> binary_ops() { return kRows; }

}  // namespace graft
