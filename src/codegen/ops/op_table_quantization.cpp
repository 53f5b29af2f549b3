// src/codegen/ops/op_table_quantization.cpp: rows of the op table: numbers as small integers and
// back. An integer q stands for (q - zero point) * scale. Bounds are those of the integers.
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using namespace ir;

// NaN becomes the lower bound, so that a store to an integer is defined.
Value bounded(Value a, Value low, Value high) {
  const Value raised = select(a >= low, a, low);
  return select(raised <= high, raised, high);
}

Value inside(Value a, Value low, Value high) { return (a >= low) & (a <= high); }

// The product with the reciprocal, not the quotient: ties must fall as they do upstream.
Value nearest(Value a, Value scale) { return round(a * (1 / scale)); }
Value nearest(Value a, Value scale, Value zero) { return round(fma(a, 1 / scale, zero)); }

Results fake_quantize(In x, In s, Value rounded) {
  const Value within = inside(rounded, s[0], s[1]);
  const Value restored = (bounded(rounded, s[0], s[1]) - x[2]) * x[1];
  return {select(x[3], restored, x[0]), within | !x[3]};
}

// Of a number, of the scale and of the zero point. Outside the bounds only the latter two move.
Results fake_quantize_gradients(In x, In s) {
  const Value inverse = 1 / x[2], rounded = nearest(x[0], x[2], x[3]);
  const Value within = inside(rounded, s[0], s[1]), edge = bounded(rounded, s[0], s[1]) - x[3];
  const Value error = (edge * x[2] - x[0]) * inverse;
  return {select(within, x[1], 0), x[1] * select(within, error, edge) * s[2],
          select(within, 0, -x[1] * x[2] * s[2])};
}

constexpr double kSmallestScale = 6.1e-5f;

// Upstream's rule, in its precisions: a range becomes the scale and the zero point of the integers
// from low to high; 0 is always one of the numbers that they stand for.
Results choose_parameters(In x, In s) {
  const auto wide = [](Value a) { return cast(Type::kF64, a); };
  const auto narrow = [](Value a) { return cast(Type::kF64, cast(Type::kF32, a)); };
  Value least = wide(x[0]), most = wide(x[1]);
  const Value low = wide(s[0]), high = wide(s[1]);
  const Value balanced = (s[2] != 0) & (least < 0) & (most > 0);
  const Value half = floor((high - low) * 0.5);
  const Value below = narrow(abs(least / -(half + 1))), above = narrow(abs(most / half));
  const Value widest = select(below < above, above, below);
  least = select(balanced, narrow(widest * -(half + 1)), least);
  most = select(balanced, narrow(widest * half), most);
  least = select(least < 0, least, 0);
  most = select(most > 0, most, 0);
  Value scale = (most - least) / (high - low);
  const Value single = cast(Type::kF32, scale);
  scale = select((single == 0) | is_inf(1 / single), 0.1, scale);
  const Value small = scale < kSmallestScale, growth = narrow(kSmallestScale / narrow(scale));
  least = select(small, narrow(least * growth), least);
  most = select(small, narrow(most * growth), most);
  scale = select(small, kSmallestScale, scale);
  const Value from_least = least / scale, from_most = most / scale;
  const Value nearer = abs(low) - abs(from_least) < abs(high) - abs(from_most);
  const Value middle = (low + high) * 0.5;
  const Value start = select(balanced, middle, select(nearer, low - from_least, high - from_most));
  return {scale, round(bounded(start, low, high))};
}

// The running extreme of an observer; infinite before the first look.
Value observed(In x, Value weight) {
  const Value moved = select(is_inf(x[0]), x[1], x[0] + weight * (x[1] - x[0]));
  return select(x[2], moved, x[0]);
}

const Op kRows[] = {
    {"quantize", 3, 2, 1, kFloatTypes, 0, "",
     [](In x, In s) { return bounded(nearest(x[0], x[1]) + x[2], s[0], s[1]); }},
    // Its zero point is no integer: it is added before rounding.
    {"quantize_float_zero", 3, 2, 1, kFloatTypes, 0, "",
     [](In x, In s) {
       return bounded(nearest(x[0], select(x[1] == 0, 1, x[1]), x[2]), s[0], s[1]);
     }},
    {"dequantize", 3, 0, 1, kFloatTypes, 0, "", [](In x, In) { return (x[0] - x[2]) * x[1]; }},
    // (q - s0) * s1 as an integer of another scale (s2 is its reciprocal) and zero point.
    {"change_quantization", 1, 6, 1, kFloatTypes, 0, "",
     [](In x, In s) { return bounded(round((x[0] - s[0]) * s[1] * s[2]) + s[3], s[4], s[5]); }},
    {"quantized_add", 2, 8, 1, kFloatTypes, 0, "",
     [](In x, In s) {
       const Value sum = (x[0] - s[0]) * s[1] + (x[1] - s[2]) * s[3];
       return bounded(round(sum * s[4]) + s[5], s[6], s[7]);
     }},
    {"quantized_mul", 2, 8, 1, kFloatTypes, 0, "",
     [](In x, In s) {
       const Value product = (x[0] - s[0]) * s[1] * ((x[1] - s[2]) * s[3]);
       return bounded(round(product * s[4]) + s[5], s[6], s[7]);
     }},
    // What follows a product of integers: its scales, a bias, and for the second one an integer.
    {"rescale", 4, 1, 1, kFloatTypes, 0, "",
     [](In x, In s) {
       const Value number = x[0] * (x[1] * x[2]) + x[3];
       return select(number < s[0], s[0], number);
     }},
    {"requantize", 4, 4, 1, kFloatTypes, 0, "",
     [](In x, In s) {
       const Value number = x[0] * (x[1] * x[2]) + x[3];
       return bounded(round(number * s[0]) + s[1], s[2], s[3]);
     }},
    // The fourth input: whether to do it at all.
    {"fake_quantize", 4, 2, 2, kFloatTypes, 8, "",
     [](In x, In s) { return fake_quantize(x, s, nearest(x[0], x[1]) + x[2]); }},
    {"fake_quantize_float_zero", 4, 2, 2, kFloatTypes, 8, "",
     [](In x, In s) { return fake_quantize(x, s, nearest(x[0], x[1], x[2])); }},
    {"fake_quantize_gradients", 4, 3, 3, kFloatTypes, 0, "",
     [](In x, In s) { return fake_quantize_gradients(x, s); }},
    {"choose_quantization", 2, 3, 2, kFloatTypes, 0, "",
     [](In x, In s) { return choose_parameters(x, s); }},
    {"observe_extreme", 3, 1, 1, kFloatTypes, 4, "", [](In x, In s) { return observed(x, s[0]); }},
};

}  // namespace

std::span<const Op> quantization_ops() { return kRows; }

}  // namespace graft
