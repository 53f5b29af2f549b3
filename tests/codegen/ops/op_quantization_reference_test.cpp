// tests/codegen/ops/op_quantization_reference_test.cpp: what the rows of quantization should give.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/ops/op_table.h"
#include "tests/codegen/ops/op_reference.h"

namespace graft {
namespace {

using D = const Doubles&;

double bounded(double a, double low, double high) {
  const double raised = a >= low ? a : low;
  return raised <= high ? raised : high;
}

// Roundings depend on the last bit, so these compute in float32, as the rows do.
double nearest(double a, double scale) {
  const float inverse = 1 / static_cast<float>(scale);
  const float product = static_cast<float>(a) * inverse;
  return std::nearbyint(product);
}
double nearest(double a, double scale, double zero) {
  const float inverse = 1 / static_cast<float>(scale);
  return std::nearbyint(std::fma(static_cast<float>(a), inverse, static_cast<float>(zero)));
}
double moved(double rounded, double zero) {
  return static_cast<float>(rounded) + static_cast<float>(zero);
}

Doubles fake_quantize(D x, D s, double rounded) {
  if (x[3] == 0) return {x[0], 1};
  const bool within = rounded >= s[0] && rounded <= s[1];
  return {(bounded(rounded, s[0], s[1]) - x[2]) * x[1], within ? 1.0 : 0.0};
}

Doubles gradients(D x, D s) {
  const double rounded = nearest(x[0], x[2], x[3]);
  if (rounded >= s[0] && rounded <= s[1]) {
    const double restored = (rounded - x[3]) * x[2];
    return {x[1], x[1] * (restored - x[0]) / x[2] * s[2], 0};
  }
  const double edge = bounded(rounded, s[0], s[1]) - x[3];
  return {0, x[1] * edge * s[2], -x[1] * x[2] * s[2]};
}

double single(double a) { return static_cast<float>(a); }

Doubles choose(double least, double most, double low, double high, bool symmetric) {
  const bool balanced = symmetric && least < 0 && most > 0;
  if (balanced) {
    const double half = std::floor((high - low) / 2);
    const double below = single(least / -(half + 1)), above = single(most / half);
    const double widest = below < above ? above : below;
    least = single(widest * -(half + 1));
    most = single(widest * half);
  }
  least = least < 0 ? least : 0;
  most = most > 0 ? most : 0;
  double scale = (most - least) / (high - low);
  if (single(scale) == 0 || std::isinf(1 / static_cast<float>(scale))) scale = 0.1;
  const double smallest = 6.1e-5f;
  if (scale < smallest) {
    const double growth = single(smallest / single(scale));
    least = single(least * growth);
    most = single(most * growth);
    scale = smallest;
  }
  const double from_least = least / scale, from_most = most / scale;
  const bool nearer = std::abs(low) - std::abs(from_least) < std::abs(high) - std::abs(from_most);
  const double start = balanced ? (low + high) / 2 : nearer ? low - from_least : high - from_most;
  return {scale, std::nearbyint(bounded(start, low, high))};
}

// Scales and zero points without a common divisor, so that no result lies between two integers.
const Doubles kPair = {0.3, 0.7, -0.2, 1.3, 0.9, 2, -10, 10};

const Reference kReferences[] = {
    {"quantize",
     [](D x, D s) -> Doubles { return {bounded(moved(nearest(x[0], x[1]), x[2]), s[0], s[1])}; },
     {-8, 7}},
    {"quantize_float_zero",
     [](D x, D s) -> Doubles {
       return {bounded(nearest(x[0], x[1] == 0 ? 1 : x[1], x[2]), s[0], s[1])};
     },
     {0, 15}},
    {"dequantize", [](D x, D) -> Doubles { return {(x[0] - x[2]) * x[1]}; }},
    {"change_quantization",
     [](D x, D s) -> Doubles {
       return {bounded(std::nearbyint((x[0] - s[0]) * s[1] * s[2]) + s[3], s[4], s[5])};
     },
     {0.3, 0.7, 1.1, 2, -8, 9}},
    {"quantized_add",
     [](D x, D s) -> Doubles {
       const double sum = (x[0] - s[0]) * s[1] + (x[1] - s[2]) * s[3];
       return {bounded(std::nearbyint(sum * s[4]) + s[5], s[6], s[7])};
     },
     kPair},
    {"quantized_mul",
     [](D x, D s) -> Doubles {
       const double product = (x[0] - s[0]) * s[1] * (x[1] - s[2]) * s[3];
       return {bounded(std::nearbyint(product * s[4]) + s[5], s[6], s[7])};
     },
     kPair},
    {"rescale",
     [](D x, D s) -> Doubles {
       const double number = x[0] * (x[1] * x[2]) + x[3];
       return {number < s[0] ? s[0] : number};
     },
     {-2}},
    {"requantize",
     [](D x, D s) -> Doubles {
       const double number = x[0] * (x[1] * x[2]) + x[3];
       return {bounded(std::nearbyint(number * s[0]) + s[1], s[2], s[3])};
     },
     {0.37, 3, -12, 12}},
    {"fake_quantize",
     [](D x, D s) { return fake_quantize(x, s, moved(nearest(x[0], x[1]), x[2])); },
     {-8, 7}},
    {"fake_quantize_float_zero",
     [](D x, D s) { return fake_quantize(x, s, nearest(x[0], x[1], x[2])); },
     {-8, 7}},
    {"fake_quantize_gradients", gradients, {-8, 7, 0.5}, 1e-4},
    {"choose_quantization",
     [](D x, D s) { return choose(x[0], x[1], s[0], s[1], s[2] != 0); },
     {-128, 127, 1}},
    {"observe_extreme",
     [](D x, D s) -> Doubles {
       if (x[2] == 0) return {x[0]};
       return {std::isinf(x[0]) ? x[1] : x[0] + s[0] * (x[1] - x[0])};
     },
     {0.25}},
};

TEST(QuantizationReference, BelongsToARow) {
  for (const Reference& reference : kReferences) {
    EXPECT_NE(find_op(reference.name), nullptr) << reference.name;
  }
}

// 0 must be one of the numbers, and both ends of the range must fit.
TEST(QuantizationReference, CoversTheRange) {
  for (const bool symmetric : {false, true}) {
    for (const double least : {-3.0, -0.1, 0.0, 0.5}) {
      for (const double most : {-0.05, 0.0, 0.2, 7.0}) {
        if (most < least) continue;
        const Doubles found = choose(least, most, -128, 127, symmetric);
        EXPECT_LE((-128 - found[1]) * found[0], least + 0.51 * found[0]);
        EXPECT_GE((127 - found[1]) * found[0], most - 0.51 * found[0]);
      }
    }
  }
}

}  // namespace

const Reference* find_quantization_reference(std::string_view name) {
  for (const Reference& reference : kReferences) {
    if (name == reference.name) return &reference;
  }
  return nullptr;
}

}  // namespace graft
