// src/kernels/pointwise/pack.cpp: the elementwise kernels that the ahead-of-time pack contains.
#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "codegen/ops/op_table.h"
#include "kernels/pointwise/kernel.h"

namespace graft {

namespace {

constexpr auto kScalar = AccessPattern::kScalar, kUniform = AccessPattern::kUniform,
               kDense = AccessPattern::kDense, kStrided = AccessPattern::kStrided,
               kReversed = AccessPattern::kReversed, kSecond = AccessPattern::kSecond;

// An operand: what is stored, and how it lies.
struct Lies {
  graft_dtype dtype;
  AccessPattern walk;
};

struct Adder {
  const PackEntry::Sink& add;

  // Outputs first, then inputs; all of them are shifted or none.
  void put(const Op& op, graft_dtype compute, std::span<const Lies> operands, int outer = 0,
           bool shifted = false) const {
    PointwiseSpec spec;
    spec.op = op.id;
    spec.compute = static_cast<uint8_t>(scalar_dtype(compute));
    spec.outer = static_cast<uint8_t>(outer);
    for (const Lies& one : operands) {
      if (shifted && spec.operands >= op.outputs) {
        spec.operand[spec.operands] = PointwiseSpec::kShifted;
      }
      spec.set(spec.operands++, one.dtype, one.walk);
    }
    add(pointwise_key(spec), [spec] { return pointwise_kernel(spec); });
  }
  void put(const char* name, std::initializer_list<Lies> operands, int outer = 0) const {
    put(*find_op(name), GRAFT_FLOAT32, {operands.begin(), operands.size()}, outer);
  }

  // Outputs are dense; walks are the inputs'.
  void operator()(const Op& op, graft_dtype compute, graft_dtype output, graft_dtype input,
                  std::span<const AccessPattern> walks, int outer = 0, bool shifted = false) const {
    std::vector<Lies> operands(op.outputs, {output, kDense});
    int k = 0;
    for (const AccessPattern walk : walks) {
      const bool condition = (op.conditions >> k++ & 1) != 0;
      const graft_dtype stored = walk == kScalar ? scalar_dtype(compute) : input;
      operands.push_back({condition ? GRAFT_BOOL : stored, walk});
    }
    put(op, compute, operands, outer, shifted);
  }
  void operator()(const Op& op, graft_dtype compute, graft_dtype output, graft_dtype input,
                  std::initializer_list<AccessPattern> walks, int outer = 0,
                  bool shifted = false) const {
    (*this)(op, compute, output, input, std::span(walks.begin(), walks.size()), outer, shifted);
  }
};

bool is_one_of(const Op& op, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, std::string_view(op.name)) != names.end();
}

bool is_test(const Op& op) {
  return is_one_of(op, {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
                        "logical_xor", "logical_not", "isnan", "isinf", "signbit"});
}

bool broadcasts(const Op& op) {
  return is_one_of(op, {"add", "sub", "plain_add", "plain_sub", "mul", "div"});
}

bool is_gradient(const Op& op) {
  const std::string_view name = op.name;
  return name.find("backward") != name.npos || name.find("gradient") != name.npos;
}

bool is_special(const Op& op) {
  const std::string_view name = op.name;
  return std::ranges::any_of(special_ops(), [&](const Op& one) { return name == one.name; });
}

// What printing a tensor asks for, in float64 too.
bool is_plain(const Op& op) { return broadcasts(op) || is_test(op); }

// The row with all inputs dense; tests, arithmetic, float32 and int64 also with a number.
void add_op(const Adder& add, const Op& op, graft_dtype dtype) {
  const graft_dtype output = is_test(op) ? GRAFT_BOOL : dtype;
  add(op, dtype, output, dtype, std::vector<AccessPattern>(op.inputs, kDense));
  if (op.inputs != 2) return;
  const bool usual = dtype == GRAFT_FLOAT32 || dtype == GRAFT_INT64;
  if (is_plain(op) || (usual && !is_gradient(op) && !is_special(op))) {
    add(op, dtype, output, dtype, {kDense, kScalar});
  }
  if (!broadcasts(op) || dtype != GRAFT_FLOAT32) return;
  for (int outer : {0, 1, 2}) {
    for (const auto& [left, right] : {std::pair(kDense, kUniform), {kUniform, kDense}}) {
      add(op, dtype, output, dtype, {left, right}, outer);
    }
    if (outer > 0) add(op, dtype, output, dtype, {kDense, kDense}, outer);
    if (outer < 2) add(op, dtype, output, dtype, {kUniform, kScalar}, outer);
  }
  add(op, dtype, output, dtype, {kScalar, kDense});
}

// One input is an element: the gradient that a sum or a mean spreads, a number kept as a tensor.
void add_spread(const Adder& add, const Op& op) {
  std::vector<AccessPattern> walks(op.inputs, kDense);
  for (AccessPattern& walk : walks) {
    walk = kUniform;
    add(op, GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_FLOAT32, walks);
    walk = kDense;
  }
}

// Masks as attention and padding make them, and what they choose between.
void add_masks(const Adder& add) {
  const Lies number{GRAFT_FLOAT32, kDense}, one{GRAFT_FLOAT32, kUniform};
  const Lies mask{GRAFT_BOOL, kDense}, same{GRAFT_BOOL, kUniform};
  for (const char* name : {"bitwise_and", "bitwise_or"}) {
    for (int outer : {0, 1, 2}) {
      const Lies operands[] = {mask, same, mask};
      add.put(*find_op(name), GRAFT_BOOL, operands, outer);
    }
  }
  for (int outer : {0, 1}) {
    add.put("where", {number, mask, one, one}, outer);
    add.put("masked_fill", {number, number, same}, outer);
  }
  for (int outer : {1, 2}) add.put("masked_fill", {number, number, mask}, outer);
}

// Operands of several dtypes: counts below a sum, gradients that autocast has cast.
void add_mixed(const Adder& add) {
  const Lies number{GRAFT_FLOAT32, kDense}, count{GRAFT_INT64, kDense};
  const Lies scalar{GRAFT_FLOAT32, kScalar};
  add.put("div", {number, count, scalar});
  add.put("div", {number, number, count});
  add.put("div", {number, {GRAFT_FLOAT32, kUniform}, {GRAFT_INT64, kUniform}});
  add.put("pow", {number, {GRAFT_INT64, kUniform}, number});
  const Lies draws[] = {{GRAFT_BOOL, kDense}, {GRAFT_BOOL, kDense}, {GRAFT_INT64, kScalar}};
  add.put(*find_op("ne"), GRAFT_INT64, draws);
  for (int outer : {1, 2}) {  // gradients that meet transposed
    add.put("plain_add", {number, number, {GRAFT_FLOAT32, kStrided}}, outer);
  }
  const Lies half{GRAFT_BFLOAT16, kDense};
  add.put("div", {half, {GRAFT_BFLOAT16, kUniform}, scalar}, 1);
  for (int outer : {0, 1, 2}) add.put("plain_add", {number, number, half}, outer);
  add.put("plain_add", {half, half, half}, 1);
  add.put("positive", {half, number}, 2);
  add.put("positive", {number, half}, 2);
  for (const char* name : {"neg", "tanh_backward"}) {  // of halves of rows, of every other row
    const std::vector<Lies> operands(1 + find_op(name)->inputs, number);
    add.put(*find_op(name), GRAFT_FLOAT32, operands, 1);
  }
  add.put("glu", {number, number, number}, 1);
  add.put("glu_gradients", {number, number, number, number, number}, 1);
}

void add_copies(const Adder& add) {
  const Op& same = *find_op("positive");
  const graft_dtype dtypes[] = {GRAFT_BOOL,    GRAFT_UINT8,    GRAFT_INT32,   GRAFT_INT64,
                                GRAFT_FLOAT16, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64};
  for (graft_dtype from : dtypes) {
    for (graft_dtype to : dtypes) {
      if (to != from) add(same, from, to, from, {kDense});
    }
  }
  for (graft_dtype bits : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    for (int outer : {1, 2, 3}) {
      for (AccessPattern walk : {kDense, kUniform, kStrided, kSecond, kScalar})
        add(same, bits, bits, bits, {walk}, outer);
      for (AccessPattern walk : {kDense, kReversed})
        add(same, bits, bits, bits, {walk}, outer, true);
    }
    add(same, bits, bits, bits, {kReversed}, 0, true);
    for (AccessPattern walk : {kUniform, kStrided, kSecond}) add(same, bits, bits, bits, {walk});
  }
}

// Bytes in the place of numbers: scales and zero points come as scalars, or from the device.
void add_quantization(const Adder& add) {
  const Lies number{GRAFT_FLOAT32, kDense}, scalar{GRAFT_FLOAT32, kScalar};
  const Lies scale{GRAFT_FLOAT32, kUniform}, zero{GRAFT_INT32, kUniform};
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8}) {
    const Lies bytes{dtype, kDense};
    add.put("quantize", {bytes, number, scalar, scalar});
    add.put("quantize", {bytes, number, scale, zero});
    add.put("dequantize", {number, bytes, scalar, scalar});
    add.put("quantized_add", {bytes, bytes, bytes});
  }
  add.put("fake_quantize", {number, {GRAFT_BOOL, kDense}, number, scalar, scalar, scalar});
  add.put("fake_quantize",
          {number, {GRAFT_BOOL, kDense}, number, scale, zero, {GRAFT_INT64, kUniform}});
}

const PackEntry pack([](const PackEntry::Sink& sink) {
  const Adder add{sink};
  for (const Op& op : op_table()) {
    const bool floats = (op.types & kFloatTypes) != 0;
    if (floats) add_op(add, op, GRAFT_FLOAT32);
    if (floats && op.inputs <= 2 && !is_special(op)) add_op(add, op, GRAFT_BFLOAT16);
    if ((op.types & kIntegerTypes) != 0 && op.inputs == 2) add_op(add, op, GRAFT_INT64);
    if ((op.types & kBoolType) != 0 && op.inputs <= 2) add_op(add, op, GRAFT_BOOL);
    if (floats && op.inputs > 1 && is_gradient(op)) add_spread(add, op);
    if (floats && op.inputs == 2 && is_plain(op)) add_op(add, op, GRAFT_FLOAT64);
  }
  for (const char* name : {"where", "neg", "maximum", "minimum", "prelu"}) {
    add_spread(add, *find_op(name));
  }
  add_copies(add);
  add_masks(add);
  add_mixed(add);
  add_quantization(add);
});

}  // namespace

}  // namespace graft
