// tests/codegen/ops/op_reference_test.cpp: what every row of the op table should give, and that no
// reference is left over.
#include "tests/codegen/ops/op_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/ops/op_table.h"

namespace graft {
namespace {

using D = const Doubles&;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;
const double kNan = std::nan("");

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double nan_max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNan : std::max(a, b);
}
double nan_min(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNan : std::min(a, b);
}
double clamp(double a, double l, double h) { return nan_min(nan_max(a, l), h); }
double python_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
// Python's floor division of floats, as PyTorch does it.
double python_div(double a, double b) {
  if (b == 0) return a / b;
  const double m = std::fmod(a, b);
  double q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double f = std::floor(q);
  return q - f > 0.5 ? f + 1 : f;
}
// NaN at -infinity.
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}
double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0 && x == std::floor(x)) return kNan;
  if (x < 0) return digamma(1 - x) - kPi / std::tan(kPi * x);
  double sum = 0;
  for (; x < 20; x += 1) sum -= 1 / x;
  const double s = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s / 252));
}
// By bisection.
double erfinv(double y) {
  if (std::abs(y) == 1) return std::copysign(kInf, y);
  if (!(std::abs(y) < 1)) return kNan;
  double low = -7, high = 7;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < y ? low : high) = middle;
  }
  return low;
}
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double truth(double x) { return x != 0; }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

const Reference kReferences[] = {
    {"add", [](D x, D s) -> Doubles { return {x[0] + s[0] * x[1]}; }, {0.5}},
    {"sub", [](D x, D s) -> Doubles { return {x[0] - s[0] * x[1]}; }, {0.5}},
    {"plain_add", [](D x, D) -> Doubles { return {x[0] + x[1]}; }},
    {"plain_sub", [](D x, D) -> Doubles { return {x[0] - x[1]}; }},
    {"mul", [](D x, D) -> Doubles { return {x[0] * x[1]}; }},
    {"div", [](D x, D) -> Doubles { return {x[0] / x[1]}; }},
    {"div_trunc", [](D x, D) -> Doubles { return {std::trunc(x[0] / x[1])}; }},
    {"div_floor", [](D x, D) -> Doubles { return {python_div(x[0], x[1])}; }},
    {"remainder", [](D x, D) -> Doubles { return {python_mod(x[0], x[1])}; }},
    {"fmod", [](D x, D) -> Doubles { return {std::fmod(x[0], x[1])}; }},
    {"pow", [](D x, D) -> Doubles { return {std::pow(x[0], x[1])}; }},
    {"pow_scalar", [](D x, D s) -> Doubles { return {std::pow(x[0], s[0])}; }, {3}},
    {"maximum", [](D x, D) -> Doubles { return {nan_max(x[0], x[1])}; }},
    {"minimum", [](D x, D) -> Doubles { return {nan_min(x[0], x[1])}; }},
    {"fmax", [](D x, D) -> Doubles { return {std::fmax(x[0], x[1])}; }},
    {"fmin", [](D x, D) -> Doubles { return {std::fmin(x[0], x[1])}; }},
    {"atan2", [](D x, D) -> Doubles { return {std::atan2(x[0], x[1])}; }},
    {"hypot", [](D x, D) -> Doubles { return {std::hypot(x[0], x[1])}; }},
    {"copysign", [](D x, D) -> Doubles { return {std::copysign(x[0], x[1])}; }},
    {"logaddexp",
     [](D x, D) -> Doubles {
       if (std::isinf(x[0]) && x[0] == x[1]) return {x[0]};
       const double m = nan_max(x[0], x[1]);
       return {m + std::log1p(std::exp(-std::abs(x[0] - x[1])))};
     }},
    {"logaddexp2",
     [](D x, D) -> Doubles {
       if (std::isinf(x[0]) && x[0] == x[1]) return {x[0]};
       const double m = nan_max(x[0], x[1]);
       return {m + std::log2(1 + std::exp2(-std::abs(x[0] - x[1])))};
     }},
    {"xlogy",
     [](D x, D) -> Doubles {
       if (std::isnan(x[1])) return {kNan};
       return {x[0] == 0 ? 0 : x[0] * std::log(x[1])};
     }},
    {"xlog1py",
     [](D x, D) -> Doubles {
       if (std::isnan(x[1])) return {kNan};
       return {x[0] == 0 ? 0 : x[0] * std::log1p(x[1])};
     }},
    {"heaviside", [](D x, D) -> Doubles { return {x[0] == 0 ? x[1] : x[0] > 0 ? 1.0 : 0.0}; }},
    {"logical_and", [](D x, D) -> Doubles { return {truth(x[0]) * truth(x[1])}; }},
    {"logical_or", [](D x, D) -> Doubles { return {std::max(truth(x[0]), truth(x[1]))}; }},
    {"logical_xor", [](D x, D) -> Doubles { return {double(truth(x[0]) != truth(x[1]))}; }},
    {"eq", [](D x, D) -> Doubles { return {double(x[0] == x[1])}; }},
    {"ne", [](D x, D) -> Doubles { return {double(x[0] != x[1])}; }},
    {"lt", [](D x, D) -> Doubles { return {double(x[0] < x[1])}; }},
    {"le", [](D x, D) -> Doubles { return {double(x[0] <= x[1])}; }},
    {"gt", [](D x, D) -> Doubles { return {double(x[0] > x[1])}; }},
    {"ge", [](D x, D) -> Doubles { return {double(x[0] >= x[1])}; }},
    {"positive", [](D x, D) -> Doubles { return {x[0]}; }},
    {"to_bool", [](D x, D) -> Doubles { return {truth(x[0])}; }},
    {"conj", [](D x, D) -> Doubles { return {x[0]}; }},
    {"neg", [](D x, D) -> Doubles { return {-x[0]}; }},
    {"abs", [](D x, D) -> Doubles { return {std::abs(x[0])}; }},
    {"angle", [](D x, D) -> Doubles { return {std::isnan(x[0]) ? kNan : x[0] < 0 ? kPi : 0}; }},
    {"exp", [](D x, D) -> Doubles { return {std::exp(x[0])}; }},
    {"exp2", [](D x, D) -> Doubles { return {std::exp2(x[0])}; }},
    {"expm1", [](D x, D) -> Doubles { return {std::expm1(x[0])}; }},
    {"log", [](D x, D) -> Doubles { return {std::log(x[0])}; }},
    {"log2", [](D x, D) -> Doubles { return {std::log2(x[0])}; }},
    {"log10", [](D x, D) -> Doubles { return {std::log10(x[0])}; }},
    {"log1p", [](D x, D) -> Doubles { return {std::log1p(x[0])}; }},
    {"sqrt", [](D x, D) -> Doubles { return {std::sqrt(x[0])}; }},
    {"rsqrt", [](D x, D) -> Doubles { return {1 / std::sqrt(x[0])}; }},
    {"reciprocal", [](D x, D) -> Doubles { return {1 / x[0]}; }},
    {"square", [](D x, D) -> Doubles { return {x[0] * x[0]}; }},
    {"cube", [](D x, D) -> Doubles { return {x[0] * x[0] * x[0]}; }},
    {"sin", [](D x, D) -> Doubles { return {std::sin(x[0])}; }},
    {"cos", [](D x, D) -> Doubles { return {std::cos(x[0])}; }},
    {"tan", [](D x, D) -> Doubles { return {std::tan(x[0])}; }},
    {"asin", [](D x, D) -> Doubles { return {std::asin(x[0])}; }},
    {"acos", [](D x, D) -> Doubles { return {std::acos(x[0])}; }},
    {"atan", [](D x, D) -> Doubles { return {std::atan(x[0])}; }},
    {"sinh", [](D x, D) -> Doubles { return {std::sinh(x[0])}; }},
    {"cosh", [](D x, D) -> Doubles { return {std::cosh(x[0])}; }},
    {"tanh", [](D x, D) -> Doubles { return {std::tanh(x[0])}; }},
    {"asinh", [](D x, D) -> Doubles { return {std::asinh(x[0])}; }},
    {"acosh", [](D x, D) -> Doubles { return {std::acosh(x[0])}; }},
    {"atanh", [](D x, D) -> Doubles { return {std::atanh(x[0])}; }},
    {"erf", [](D x, D) -> Doubles { return {std::erf(x[0])}; }},
    {"erfc", [](D x, D) -> Doubles { return {std::erfc(x[0])}; }},
    {"erfinv", [](D x, D) -> Doubles { return {erfinv(x[0])}; }},
    {"lgamma", [](D x, D) -> Doubles { return {std::lgamma(x[0])}; }},
    {"digamma", [](D x, D) -> Doubles { return {x[0] == kInf ? kInf : x[0] == -kInf ? kNan : digamma(x[0])}; }, {}, 2e-4},
    {"sigmoid", [](D x, D) -> Doubles { return {sigmoid(x[0])}; }},
    {"logit",
     [](D x, D s) -> Doubles {
       const double z = clamp(x[0], s[0], 1 - s[0]);
       return {std::log(z / (1 - z))};
     },
     {0.25}},
    {"sinc", [](D x, D) -> Doubles { return {x[0] == 0 ? 1 : std::sin(kPi * x[0]) / (kPi * x[0])}; }},
    {"entr",
     [](D x, D) -> Doubles {
       if (std::isnan(x[0])) return {kNan};
       return {x[0] > 0 ? -x[0] * std::log(x[0]) : x[0] == 0 ? 0 : -kInf};
     }},
    {"floor", [](D x, D) -> Doubles { return {std::floor(x[0])}; }},
    {"ceil", [](D x, D) -> Doubles { return {std::ceil(x[0])}; }},
    {"round", [](D x, D) -> Doubles { return {std::nearbyint(x[0])}; }},
    {"round_decimals", [](D x, D) -> Doubles { return {std::nearbyint(x[0] * 4.0) / 4.0}; }, {0.60205999132}, 0.26},
    {"trunc", [](D x, D) -> Doubles { return {std::trunc(x[0])}; }},
    {"frac", [](D x, D) -> Doubles { return {x[0] - std::trunc(x[0])}; }},
    {"sign", [](D x, D) -> Doubles { return {sign(x[0])}; }},
    {"sgn", [](D x, D) -> Doubles { return {sign(x[0])}; }},
    {"signbit", [](D x, D) -> Doubles { return {double(std::signbit(x[0]))}; }},
    {"isnan", [](D x, D) -> Doubles { return {double(std::isnan(x[0]))}; }},
    {"isinf", [](D x, D) -> Doubles { return {double(std::isinf(x[0]))}; }},
    {"isposinf", [](D x, D) -> Doubles { return {double(x[0] == kInf)}; }},
    {"isneginf", [](D x, D) -> Doubles { return {double(x[0] == -kInf)}; }},
    {"nan_to_num",
     [](D x, D) -> Doubles {
       return {std::isnan(x[0]) ? 1 : x[0] == kInf ? 2 : x[0] == -kInf ? 3 : x[0]};
     },
     {1, 2, 3}},
    {"logical_not", [](D x, D) -> Doubles { return {double(x[0] == 0)}; }},
    {"where", [](D x, D) -> Doubles { return {x[0] != 0 ? x[1] : x[2]}; }},
    {"masked_fill", [](D x, D s) -> Doubles { return {x[1] != 0 ? s[0] : x[0]}; }, {-kInf}},
    {"clamp", [](D x, D) -> Doubles { return {clamp(x[0], x[1], x[2])}; }},
    {"clamp_scalar", [](D x, D s) -> Doubles { return {clamp(x[0], s[0], s[1])}; }, {-1, 2}},
    {"clamp_min", [](D x, D s) -> Doubles { return {nan_max(x[0], s[0])}; }, {-1}},
    {"clamp_max", [](D x, D s) -> Doubles { return {nan_min(x[0], s[0])}; }, {1}},
    {"lerp",
     [](D x, D) -> Doubles {
       return {std::abs(x[2]) < 0.5 ? x[0] + x[2] * (x[1] - x[0])
                                    : x[1] - (x[1] - x[0]) * (1 - x[2])};
     }},
    {"lerp_scalar",
     [](D x, D s) -> Doubles { return {x[1] - (x[1] - x[0]) * (1 - s[0])}; },
     {0.75}},
    {"addcmul", [](D x, D s) -> Doubles { return {x[0] + s[0] * x[1] * x[2]}; }, {0.5}, 2e-5},
    {"addcdiv", [](D x, D s) -> Doubles { return {x[0] + s[0] * x[1] / x[2]}; }, {0.5}, 2e-5},
    {"addr",
     [](D x, D s) -> Doubles { return {s[0] * x[0] + s[1] * x[1] * x[2]}; },
     {0.5, 2},
     2e-5},
    {"cross_term", [](D x, D) -> Doubles { return {x[0] * x[1] - x[2] * x[3]}; }, {}, 2e-5},
    {"binary_cross_entropy",
     [](D x, D) -> Doubles {
       return {(x[1] - 1) * nan_max(std::log1p(-x[0]), -100) -
               x[1] * nan_max(std::log(x[0]), -100)};
     },
     {},
     2e-5},
    {"binary_cross_entropy_backward",
     [](D x, D) -> Doubles {
       return {x[0] * (x[1] - x[2]) / nan_max((1 - x[1]) * x[1], 1e-12)};
     },
     {},
     2e-5},
    {"renorm_scale_factor",
     [](D x, D s) -> Doubles { return {x[0] > s[0] ? s[0] / (x[0] + 1e-7) : 1}; },
     {2}},
    {"mse", [](D x, D) -> Doubles { return {(x[0] - x[1]) * (x[0] - x[1])}; }},
    {"mse_backward", [](D x, D s) -> Doubles { return {s[0] * (x[0] - x[1]) * x[2]}; }, {2}, 2e-5},
    {"smooth_l1",
     [](D x, D s) -> Doubles {
       const double z = std::abs(x[0] - x[1]);
       return {z < s[0] ? 0.5 * z * z / s[0] : z - 0.5 * s[0]};
     },
     {1.25}},
    {"smooth_l1_backward",
     [](D x, D s) -> Doubles {
       const double d = x[0] - x[1], g = s[0] * x[2];
       return {d <= -s[1] ? -g : d >= s[1] ? g : g * d / s[1]};
     },
     {2, 1.25}},
    {"huber",
     [](D x, D s) -> Doubles {
       const double z = std::abs(x[0] - x[1]);
       return {z <= s[0] ? 0.5 * z * z : s[0] * (z - 0.5 * s[0])};
     },
     {1.25}},
    {"huber_backward",
     [](D x, D s) -> Doubles {
       const double d = x[0] - x[1], g = s[0] * x[2];
       return {d <= -s[1] ? -g * s[1] : d >= s[1] ? g * s[1] : g * d};
     },
     {2, 1.25},
     1e-5},
    {"relu", [](D x, D) -> Doubles { return {x[0] < 0 ? 0 : x[0]}; }},
    {"threshold", [](D x, D s) -> Doubles { return {x[0] <= s[0] ? s[1] : x[1]}; }, {0.5, 9}},
    {"leaky_relu", [](D x, D s) -> Doubles { return {x[0] > 0 ? x[0] : x[0] * s[0]}; }, {0.01}},
    {"leaky_relu_backward", [](D x, D s) -> Doubles { return {x[0] > 0 ? x[1] : x[1] * s[0]}; }, {0.01}},
    {"prelu", [](D x, D) -> Doubles { return {x[0] > 0 ? x[0] : x[1] * x[0]}; }},
    {"prelu_backward",
     [](D x, D) -> Doubles {
       return {x[0] > 0 ? x[2] : x[1] * x[2], x[0] > 0 ? 0 : x[0] * x[2]};
     }},
    {"elu",
     [](D x, D s) -> Doubles {
       return {x[0] < 0 ? std::expm1(x[0] * s[2]) * s[0] * s[1] : x[0] * s[1]};
     },
     {1.5, 2, 0.5}},
    {"elu_backward",
     [](D x, D s) -> Doubles {
       return {x[0] * (x[1] <= 0 ? s[2] * s[0] * s[1] * std::exp(x[1] * s[2]) : s[1])};
     },
     {1.5, 2, 0.5, 0}},
    {"gelu", [](D x, D) -> Doubles { return {gelu(x[0])}; }},
    {"gelu_backward",
     [](D x, D) -> Doubles {
       const double density = std::exp(-0.5 * x[1] * x[1]) / std::sqrt(2 * kPi);
       return {x[0] * (normal(x[1]) + x[1] * density)};
     }},
    {"gelu_tanh", [](D x, D) -> Doubles { return {gelu_tanh(x[0])}; }},
    {"gelu_tanh_backward",
     [](D x, D) -> Doubles {
       const double a = x[1], k = std::sqrt(2 / kPi);
       const double t = std::tanh(k * (a + 0.044715 * a * a * a));
       return {x[0] * (0.5 * (1 + t) +
                       0.5 * a * (1 - t * t) * (k * (1 + 3 * 0.044715 * a * a)))};
     },
     {},
     1e-5},
    {"silu", [](D x, D) -> Doubles { return {x[0] / (1 + std::exp(-x[0]))}; }},
    {"silu_backward",
     [](D x, D) -> Doubles {
       const double g = sigmoid(x[1]);
       return {x[0] * g * (1 + x[1] * (1 - g))};
     },
     {},
     1e-5},
    {"mish", [](D x, D) -> Doubles { return {x[0] * std::tanh(softplus(x[0]))}; }},
    {"mish_backward",
     [](D x, D) -> Doubles {
       const double t = std::tanh(softplus(x[1]));
       return {x[0] * (t + x[1] * sigmoid(x[1]) * (1 - t * t))};
     },
     {},
     1e-5},
    {"hardswish", [](D x, D) -> Doubles { return {x[0] * clamp(x[0] + 3, 0, 6) / 6}; }},
    {"hardswish_backward",
     [](D x, D) -> Doubles {
       if (x[1] <= -3) return {0};
       return {x[0] * (x[1] < 3 ? x[1] / 3 + 0.5 : 1.0)};
     }},
    {"hardsigmoid", [](D x, D) -> Doubles { return {clamp(x[0] + 3, 0, 6) / 6}; }},
    {"hardsigmoid_backward", [](D x, D) -> Doubles { return {x[1] > -3 && x[1] < 3 ? x[0] / 6 : 0}; }},
    {"hardtanh_backward", [](D x, D s) -> Doubles { return {x[1] <= s[0] || x[1] >= s[1] ? 0 : x[0]}; }, {-1, 2}},
    {"hardshrink", [](D x, D s) -> Doubles { return {x[0] >= -s[0] && x[0] <= s[0] ? 0 : x[0]}; }, {0.5}},
    {"softshrink",
     [](D x, D s) -> Doubles {
       if (std::isnan(x[0])) return {kNan};
       return {x[0] > s[0] ? x[0] - s[0] : x[0] < -s[0] ? x[0] + s[0] : 0};
     },
     {0.5}},
    {"shrink_backward", [](D x, D s) -> Doubles { return {x[1] >= -s[0] && x[1] <= s[0] ? 0 : x[0]}; }, {0.5}},
    {"softplus",
     [](D x, D s) -> Doubles {
       return {x[0] * s[0] > s[1] ? x[0] : std::log1p(std::exp(x[0] * s[0])) / s[0]};
     },
     {2, 8}},
    {"softplus_backward",
     [](D x, D s) -> Doubles { return {x[1] * s[0] > s[1] ? x[0] : x[0] * sigmoid(x[1] * s[0])}; },
     {2, 8}},
    {"log_sigmoid", [](D x, D) -> Doubles { return {nan_min(x[0], 0) - std::log1p(std::exp(-std::abs(x[0])))}; }},
    {"log_sigmoid_backward", [](D x, D) -> Doubles { return {x[1] * sigmoid(-x[0])}; }},
    {"sigmoid_backward", [](D x, D) -> Doubles { return {x[0] * (1 - x[1]) * x[1]}; }, {}, 1e-5},
    {"tanh_backward", [](D x, D) -> Doubles { return {x[0] * (1 - x[1] * x[1])}; }, {}, 1e-5},
    {"logit_backward",
     [](D x, D s) -> Doubles {
       const bool inside = x[1] >= s[0] && x[1] <= 1 - s[0];
       return {inside ? x[0] / (x[1] * (1 - x[1])) : 0};
     },
     {0.25}},
    {"glu", [](D x, D) -> Doubles { return {x[0] * sigmoid(x[1])}; }},
    {"glu_backward", [](D x, D) -> Doubles { return {(1 - x[0]) * x[0] * x[1] * x[2]}; }, {}, 1e-5},
    {"glu_gradients",
     [](D x, D) -> Doubles {
       const double g = sigmoid(x[2]);
       return {x[0] * g, x[0] * x[1] * g * (1 - g)};
     },
     {},
     1e-5},
    {"glu_jvp",
     [](D x, D) -> Doubles {
       const double g = sigmoid(x[1]);
       return {x[2] * g + x[0] * (x[3] - g * x[3])};
     }},
};

TEST(OpReference, BelongsToARow) {
  for (const Reference& reference : kReferences) {
    EXPECT_NE(find_op(reference.name), nullptr) << reference.name;
  }
}

}  // namespace

const Reference* find_reference(std::string_view name) {
  for (const Reference& reference : kReferences) {
    if (name == reference.name) return &reference;
  }
  for (const auto find : {find_special_reference, find_gradient_reference}) {
    if (const Reference* found = find(name)) return found;
  }
  return find_quantization_reference(name);
}

}  // namespace graft
