// src/codegen/ops/op_table_activation.cpp: rows of the op table: activations and their gradients.
// Gradients take the operands in the order of ATen's stubs.
#include <cmath>
#include <numbers>

#include "codegen/math/formulas.h"
#include "codegen/ops/complex_functions.h"
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using ir::Value;
using C = ComplexValue;

constexpr double kSqrtHalf = 0.70710678118654752;
const double kGaussScale = 1 / std::sqrt(2 * std::numbers::pi);
const double kTanhScale = std::sqrt(2 / std::numbers::pi);
constexpr double kTanhCubic = 0.044715;

// f32: max(a, 0) less what the tail takes. Infinity stays and -infinity gives NaN, as in the
// formula, because max(a, 0) is the sum of two halves.
Value gelu(Value a) {
  if (a.type() == ir::Type::kF64) return 0.5 * a * (1 + erf(a * kSqrtHalf));
  const Value magnitude = abs(a), positive = 0.5 * a + 0.5 * magnitude;
  return select(magnitude <= ir::kTailEnd, positive - magnitude * ir::upper_tail(magnitude),
                positive);
}

Value gelu_backward(Value grad, Value a) {
  const Value distribution = 0.5 * (1 + erf(a * kSqrtHalf));
  return grad * (distribution + a * kGaussScale * exp(a * a * -0.5));
}

Value gelu_tanh(Value a) { return 0.5 * a * (1 + tanh(kTanhScale * (a + kTanhCubic * a * a * a))); }

Value gelu_tanh_backward(Value grad, Value a) {
  const Value t = tanh(kTanhScale * (a + kTanhCubic * a * a * a));
  const Value inner = kTanhScale * (1 + 3 * kTanhCubic * a * a);
  return grad * (0.5 * (1 + t) + 0.5 * a * (1 - t * t) * inner);
}

Value clamp_to(Value a, double low, double high) {
  return select(a < low, low, select(a > high, high, a));
}

// tanh(log(1 + e^a)) = n / (n + 2) with n = e^a (e^a + 2); 1 where e^a would overflow.
Value tanh_of_softplus(Value a) {
  const Value e = exp(select(a > 20, 20, a));
  const Value n = e * (e + 2);
  return n / (n + 2);
}

Value mish_backward(Value grad, Value a) {
  const Value t = tanh_of_softplus(a);
  return grad * (t + a * sigmoid(a) * (1 - t * t));
}

Value silu_backward(Value grad, Value a) {
  const Value s = sigmoid(a);
  return grad * s * (1 + a * (1 - s));
}

Value softplus(Value a, Value beta, Value threshold) {
  return select(a * beta > threshold, a, log1p(exp(a * beta)) / beta);
}

Value softplus_backward(Value grad, Value a, Value beta, Value threshold) {
  return select(a * beta > threshold, grad, grad * sigmoid(a * beta));
}

Value elu_backward(Value grad, Value a, In s) {
  const Value from_result = s[2] * (a + s[0] * s[1]);
  const Value from_input = s[2] * s[0] * s[1] * exp(a * s[2]);
  const Value slope = select(s[3] != 0, from_result, from_input);
  return grad * select(a <= 0, slope, s[1]);
}

Value logit_backward(Value grad, Value a, Value eps) {
  const Value low = select(eps < 0, 0, eps);
  const Value inside = (a >= low) & (a <= 1 - low);
  const Value outside = select(eps < 0, like(a, std::nan("")), 0);
  return select(inside, grad / (a * (1 - a)), outside);
}

const Op kRows[] = {
    {"relu", 1, 0, 1, kNumbers, 0, ".", [](In x, In) { return select(x[0] < 0, 0, x[0]); }},
    {"threshold", 2, 2, 1, kNumbers, 0,
     "threshold_stub threshold_backward.default(1:grad_output,0:self,threshold,=0)",
     [](In x, In s) { return select(x[0] <= s[0], s[1], x[1]); }},
    {"leaky_relu", 1, 1, 1, kFloatTypes, 0, "leaky_relu_stub .(self,negative_slope=0.01)",
     [](In x, In s) { return select(x[0] > 0, x[0], x[0] * s[0]); }},
    {"leaky_relu_backward", 2, 1, 1, kFloatTypes, 0,
     "leaky_relu_backward_stub .(1:grad_output,0:self,negative_slope)",
     [](In x, In s) { return select(x[0] > 0, x[1], x[1] * s[0]); }},
    {"prelu", 2, 0, 1, kFloatTypes, 0, "prelu_stub",
     [](In x, In) { return select(x[0] > 0, x[0], x[1] * x[0]); }},
    {"prelu_backward", 3, 0, 2, kFloatTypes, 0, "prelu_backward_stub",
     [](In x, In) -> Results {
       const Value positive = x[0] > 0;
       return {select(positive, x[2], x[1] * x[2]), select(positive, 0, x[0] * x[2])};
     }},
    {"elu", 1, 3, 1, kFloatTypes, 0, "elu_stub .(self,alpha=1,scale=1,input_scale=1)",
     [](In x, In s) { return select(x[0] < 0, expm1(x[0] * s[2]) * (s[0] * s[1]), x[0] * s[1]); }},
    {"elu_backward", 2, 4, 1, kFloatTypes, 0,
     "elu_backward_stub "
     ".(0:grad_output,2:alpha,3:scale,4:input_scale,5:is_result,1:self_or_result)",
     [](In x, In s) { return elu_backward(x[0], x[1], s); }},
    {"gelu", 1, 0, 1, kFloatTypes, 0, ".(self,approximate=none)", calls<gelu>()},
    {"gelu_backward", 2, 0, 1, kFloatTypes, 0, ".(grad_output,self,approximate=none)",
     calls<gelu_backward>()},
    {"gelu_tanh", 1, 0, 1, kFloatTypes, 0, "gelu.default(self,approximate==tanh)",
     calls<gelu_tanh>()},
    {"gelu_tanh_backward", 2, 0, 1, kFloatTypes, 0,
     "gelu_backward.default(grad_output,self,approximate==tanh)", calls<gelu_tanh_backward>()},
    {"silu", 1, 0, 1, kFloatTypes | kComplexTypes, 0, "silu_stub .",
     [](In x, In) { return x[0] / (1 + exp(-x[0])); },
     [](In x, In) -> Results {
       const C a = widened(C::of(x, 0));
       return narrowed(x[0].type(), a * complex_sigmoid(a));
     }},
    {"silu_backward", 2, 0, 1, kFloatTypes, 0, "silu_backward_stub .", calls<silu_backward>()},
    {"mish", 1, 0, 1, kFloatTypes, 0, "mish_stub",
     [](In x, In) { return x[0] * tanh_of_softplus(x[0]); }},
    {"mish_backward", 2, 0, 1, kFloatTypes, 0, "mish_backward_stub", calls<mish_backward>()},
    {"hardswish", 1, 0, 1, kFloatTypes, 0, "hardswish_stub .",
     [](In x, In) { return x[0] * clamp_to(x[0] + 3, 0, 6) / 6; }},
    {"hardswish_backward", 2, 0, 1, kFloatTypes, 0, "hardswish_backward_stub .",
     [](In x, In) {
       const Value slope = select(x[1] < 3, x[1] / 3 + 0.5, like(x[1], 1));
       return select(x[1] <= -3, 0, x[0] * slope);
     }},
    {"hardsigmoid", 1, 0, 1, kFloatTypes, 0, "hardsigmoid_stub .",
     [](In x, In) { return clamp_to(x[0] + 3, 0, 6) / 6; }},
    {"hardsigmoid_backward", 2, 0, 1, kFloatTypes, 0, "hardsigmoid_backward_stub .",
     [](In x, In) { return select((x[1] > -3) & (x[1] < 3), x[0] / 6, 0); }},
    {"hardtanh_backward", 2, 2, 1, kFloatTypes, 0, "hardtanh_backward_stub .",
     [](In x, In s) { return select((x[1] <= s[0]) | (x[1] >= s[1]), 0, x[0]); }},
    {"hardshrink", 1, 1, 1, kFloatTypes, 0, "hardshrink_stub",
     [](In x, In s) { return select((x[0] >= -s[0]) & (x[0] <= s[0]), 0, x[0]); }},
    {"softshrink", 1, 1, 1, kFloatTypes, 0, "softshrink_stub",
     [](In x, In s) {
       const Value inside = select(is_nan(x[0]), x[0], 0);
       return select(x[0] > s[0], x[0] - s[0], select(x[0] < -s[0], x[0] + s[0], inside));
     }},
    {"shrink_backward", 2, 1, 1, kFloatTypes, 0, "shrink_backward_stub",
     [](In x, In s) { return select((x[1] >= -s[0]) & (x[1] <= s[0]), 0, x[0]); }},
    {"softplus", 1, 2, 1, kFloatTypes, 0, "softplus_stub .(self,beta=1,threshold=20)",
     calls<softplus>()},
    {"softplus_backward", 2, 2, 1, kFloatTypes, 0, "softplus_backward_stub .",
     calls<softplus_backward>()},
    {"log_sigmoid", 1, 0, 1, kFloatTypes, 0, "",
     [](In x, In) { return minimum(x[0], like(x[0], 0)) - log1p(exp(-abs(x[0]))); }},
    {"log_sigmoid_backward", 2, 0, 1, kFloatTypes, 0, "",
     [](In x, In) { return x[1] * sigmoid(-x[0]); }},
    {"sigmoid_backward", 2, 0, 1, kFloatTypes | kComplexTypes, 0, "sigmoid_backward_stub .",
     [](In x, In) { return x[0] * (1 - x[1]) * x[1]; },
     [](In x, In) -> Results { return C::of(x, 0) * conjugate((1 - C::of(x, 1)) * C::of(x, 1)); }},
    {"tanh_backward", 2, 0, 1, kFloatTypes | kComplexTypes, 0, "tanh_backward_stub .",
     [](In x, In) { return x[0] * (1 - x[1] * x[1]); },
     [](In x, In) -> Results { return C::of(x, 0) * conjugate(1 - C::of(x, 1) * C::of(x, 1)); }},
    {"logit_backward", 2, 1, 1, kFloatTypes, 0, "logit_backward_stub", calls<logit_backward>()},
    {"glu", 2, 0, 1, kFloatTypes, 0, "", [](In x, In) { return x[0] * sigmoid(x[1]); }},
    {"glu_backward", 3, 0, 1, kFloatTypes, 0, "glu_backward_stub",
     [](In x, In) { return (1 - x[0]) * x[0] * x[1] * x[2]; }},
    // Of both halves at once: grad, first half, second half.
    {"glu_gradients", 3, 0, 2, kFloatTypes, 0, "",
     [](In x, In) -> Results {
       const Value s = sigmoid(x[2]);
       return {x[0] * s, x[0] * x[1] * s * (1 - s)};
     }},
    {"glu_jvp", 4, 0, 1, kFloatTypes, 0, "glu_jvp_stub",
     [](In x, In) {
       const Value s = sigmoid(x[1]);
       return x[2] * s + x[0] * (x[3] - s * x[3]);
     }},
};

}  // namespace

std::span<const Op> activation_ops() { return kRows; }

}  // namespace graft
