// src/codegen/ops/op_table_ternary.cpp: rows of the op table: choices, bounds, blends and losses.
#include <cmath>

#include "codegen/ops/complex_value.h"
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using ir::Value;
using C = ComplexValue;

// PyTorch's order: the lower bound first, NaN of any of the three wins. Not minimum(maximum()): gcc
// turns NaN checks in a chain into jumps and then vectorises nothing.
Value bounded(Value a, Value low, Value high) {
  const Value raised = select(a > low, a, low);
  const Value inside = select(raised < high, raised, high);
  if (!is_float(a.type())) return inside;
  return select(is_nan(a) | is_nan(low) | is_nan(high), like(a, std::nan("")), inside);
}

// Symmetric about weight 1/2, so that both ends are met exactly.
Value blend(Value a, Value b, Value weight) {
  const Value near = abs(weight) < 0.5;
  return select(near, a + weight * (b - a), b - (b - a) * (1 - weight));
}

Results blend(C a, C b, C weight) {
  const Value near = weight.re * weight.re + weight.im * weight.im < 0.25;
  return select(near, a + weight * (b - a), b - (b - a) * (1 - weight));
}

Value smooth_l1(Value difference, Value beta) {
  const Value z = abs(difference);
  return select(z < beta, 0.5 * z * z / beta, z - 0.5 * beta);
}

Value huber(Value difference, Value delta) {
  const Value z = abs(difference);
  return select(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta));
}

// The logarithms stop at -100, so that a certain mistake costs a finite loss.
Value binary_cross_entropy(Value chance, Value target) {
  auto bounded = [](Value power) { return select(power < -100, -100, power); };
  return (target - 1) * bounded(log1p(-chance)) - target * bounded(log(chance));
}

Value binary_cross_entropy_backward(Value grad, Value chance, Value target) {
  const Value variance = (1 - chance) * chance;
  return grad * (chance - target) / select(variance < 1e-12, 1e-12, variance);
}

Value either(Value a, Value b) { return a.type() == ir::Type::kBool ? a | b : a + b; }
Value product(Value a, Value b) { return a.type() == ir::Type::kBool ? a & b : a * b; }

// A beta of 0 keeps NaN in self out.
Value rank_one_update(In x, In s) {
  const Value update = product(product(s[1], x[1]), x[2]);
  const Value none = s[0].type() == ir::Type::kBool ? !s[0] : s[0] == 0;
  return select(none, update, either(product(s[0], x[0]), update));
}

Results complex_rank_one_update(In x, In s) {
  const C update = C::of(s, 1) * C::of(x, 1) * C::of(x, 2);
  const C sum = C::of(s, 0) * C::of(x, 0) + update;
  const Value none = (s[0] == 0) & (s[1] == 0);
  return {select(none, update.re, sum.re), select(none, update.im, sum.im)};
}

const Op kRows[] = {
    {"addr", 3, 2, 1, kRealTypes | kComplexTypes, 0, "addr_stub",
     [](In x, In s) { return rank_one_update(x, s); },
     [](In x, In s) { return complex_rank_one_update(x, s); }},
    // One component of a cross product.
    {"cross_term", 4, 0, 1, kNumbers | kComplexTypes, 0, "",
     [](In x, In) { return x[0] * x[1] - x[2] * x[3]; },
     [](In x, In) -> Results { return C::of(x, 0) * C::of(x, 1) - C::of(x, 2) * C::of(x, 3); }},
    {"binary_cross_entropy", 2, 0, 1, kFloatTypes, 0, "", calls<binary_cross_entropy>()},
    {"binary_cross_entropy_backward", 3, 0, 1, kFloatTypes, 0, "",
     calls<binary_cross_entropy_backward>()},
    {"renorm_scale_factor", 1, 1, 1, kFloatTypes, 0, "renorm_scale_factor_stub",
     [](In x, In s) { return select(x[0] > s[0], s[0] / (x[0] + 1e-7), 1); }},
    {"where", 3, 0, 1, kRealTypes | kComplexTypes, 1, "where_kernel .self",
     [](In x, In) { return select(x[0], x[1], x[2]); },
     [](In x, In) -> Results {
       return {select(x[0], x[2], x[4]), select(x[0], x[3], x[5])};
     }},
    {"masked_fill", 2, 1, 1, kRealTypes | kComplexTypes, 2, ".Scalar",
     [](In x, In s) { return select(x[1], s[0], x[0]); },
     [](In x, In s) -> Results {
       return {select(x[2], s[0], x[0]), select(x[2], s[1], x[1])};
     }},
    {"clamp", 3, 0, 1, kNumbers, 0, "clamp_stub", calls<bounded>()},
    {"clamp_scalar", 1, 2, 1, kNumbers, 0,
     "clamp_scalar_stub hardtanh.default(self,min_val=-1,max_val=1)", calls<bounded>()},
    {"clamp_min", 1, 1, 1, kNumbers, 0, "clamp_min_scalar_stub .", calls<ir::maximum>()},
    {"clamp_max", 1, 1, 1, kNumbers, 0, "clamp_max_scalar_stub .", calls<ir::minimum>()},
    {"lerp", 3, 0, 1, kFloatTypes | kComplexTypes, 0, "lerp_kernel_tensor_weight",
     [](In x, In) { return blend(x[0], x[1], x[2]); },
     [](In x, In) { return blend(C::of(x, 0), C::of(x, 1), C::of(x, 2)); }},
    {"lerp_scalar", 2, 1, 1, kFloatTypes | kComplexTypes, 0,
     "lerp_kernel_scalar_weight lerp.Scalar", [](In x, In s) { return blend(x[0], x[1], s[0]); },
     [](In x, In s) { return blend(C::of(x, 0), C::of(x, 1), C::of(s, 0)); }},
    {"addcmul", 3, 1, 1, kNumbers | kComplexTypes, 0,
     "addcmul_stub .(self,tensor1,tensor2,value=1)",
     [](In x, In s) { return x[0] + s[0] * x[1] * x[2]; },
     [](In x, In s) -> Results { return C::of(x, 0) + C::of(s, 0) * C::of(x, 1) * C::of(x, 2); }},
    {"addcdiv", 3, 1, 1, kFloatTypes | kComplexTypes, 0,
     "addcdiv_stub .(self,tensor1,tensor2,value=1)",
     [](In x, In s) { return x[0] + s[0] * x[1] / x[2]; },
     [](In x, In s) -> Results { return C::of(x, 0) + C::of(s, 0) * C::of(x, 1) / C::of(x, 2); }},
    {"mse", 2, 0, 1, kFloatTypes, 0, "mse_stub",
     [](In x, In) { return (x[0] - x[1]) * (x[0] - x[1]); }},
    {"mse_backward", 3, 1, 1, kFloatTypes, 0, "mse_backward_stub",
     [](In x, In s) { return s[0] * (x[0] - x[1]) * x[2]; }},
    {"smooth_l1", 2, 1, 1, kFloatTypes, 0, "smooth_l1_stub",
     [](In x, In s) { return smooth_l1(x[0] - x[1], s[0]); }},
    {"smooth_l1_backward", 3, 2, 1, kFloatTypes, 0, "smooth_l1_backward_stub",
     [](In x, In s) {
       const Value d = x[0] - x[1], full = s[0] * x[2];
       return select(d <= -s[1], -full, select(d >= s[1], full, full * d / s[1]));
     }},
    {"huber", 2, 1, 1, kFloatTypes, 0, "huber_stub",
     [](In x, In s) { return huber(x[0] - x[1], s[0]); }},
    {"huber_backward", 3, 2, 1, kFloatTypes, 0, "huber_backward_stub",
     [](In x, In s) {
       const Value d = x[0] - x[1], full = s[0] * x[2];
       return select(d <= -s[1], -full * s[1], select(d >= s[1], full * s[1], full * d));
     }},
};

}  // namespace

std::span<const Op> ternary_ops() { return kRows; }

}  // namespace graft
