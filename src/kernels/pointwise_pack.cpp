// src/kernels/pointwise_pack.cpp: the elementwise kernels that the ahead-of-time pack contains.
#include <initializer_list>
#include <string_view>
#include <vector>

#include "codegen/op_table.h"
#include "codegen/program_cache.h"
#include "kernels/pointwise_kernel.h"

namespace graft {

namespace {

constexpr auto kScalar = Walk::kScalar, kUniform = Walk::kUniform, kDense = Walk::kDense,
               kStrided = Walk::kStrided, kReversed = Walk::kReversed, kSecond = Walk::kSecond;

struct Adder {
  const PackEntry::Sink& add;

  // Outputs are dense; walks are the inputs', which are shifted or not.
  void operator()(const Op& op, graft_dtype compute, graft_dtype output, graft_dtype input,
                  std::initializer_list<Walk> walks, int outer = 0, bool shifted = false) const {
    PointwiseSpec spec;
    spec.op = op.id;
    spec.compute = static_cast<uint8_t>(scalar_dtype(compute));
    spec.outer = static_cast<uint8_t>(outer);
    for (int i = 0; i < op.outputs; ++i) spec.set(spec.operands++, output, kDense);
    int k = 0;
    for (const Walk walk : walks) {
      const bool condition = (op.conditions >> k++ & 1) != 0;
      const graft_dtype stored = walk == kScalar ? scalar_dtype(compute) : input;
      if (shifted) spec.operand[spec.operands] = PointwiseSpec::kShifted;
      spec.set(spec.operands++, condition ? GRAFT_BOOL : stored, walk);
    }
    add(pointwise_key(spec), [spec] { return pointwise_kernel(spec); });
  }
};

bool is_test(const Op& op) {
  const std::string_view name = op.name;
  for (const char* test : {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
                           "logical_xor", "logical_not", "isnan", "isinf", "signbit"}) {
    if (name == test) return true;
  }
  return false;
}

bool broadcasts(const Op& op) {
  const std::string_view name = op.name;
  for (const char* frequent : {"add", "sub", "plain_add", "plain_sub", "mul", "div"}) {
    if (name == frequent) return true;
  }
  return false;
}

void add_op(const Adder& add, const Op& op, graft_dtype dtype) {
  const graft_dtype output = is_test(op) ? GRAFT_BOOL : dtype;
  if (op.inputs == 1) return add(op, dtype, output, dtype, {kDense});
  if (op.inputs == 3) return add(op, dtype, output, dtype, {kDense, kDense, kDense});
  if (op.inputs == 4) return add(op, dtype, output, dtype, {kDense, kDense, kDense, kDense});
  add(op, dtype, output, dtype, {kDense, kDense});
  if (!broadcasts(op) && !is_test(op)) return;
  add(op, dtype, output, dtype, {kDense, kScalar});
  if (dtype != GRAFT_FLOAT32 || is_test(op)) return;
  add(op, dtype, output, dtype, {kDense, kUniform});
  for (int outer : {1, 2}) {
    add(op, dtype, output, dtype, {kDense, kUniform}, outer);
    add(op, dtype, output, dtype, {kDense, kDense}, outer);
  }
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
      for (Walk walk : {kDense, kUniform, kStrided, kSecond})
        add(same, bits, bits, bits, {walk}, outer);
      for (Walk walk : {kDense, kReversed}) add(same, bits, bits, bits, {walk}, outer, true);
    }
    add(same, bits, bits, bits, {kReversed}, 0, true);
    for (Walk walk : {kUniform, kStrided, kSecond}) add(same, bits, bits, bits, {walk});
  }
}

// Bytes in the place of numbers: scales and zero points come as scalars, or from the device.
void add_quantization(const Adder& add) {
  struct Lies {
    graft_dtype dtype;
    Walk walk;
  };
  const auto put = [&](const char* name, std::initializer_list<Lies> operands) {
    PointwiseSpec spec;
    spec.op = find_op(name)->id;
    spec.compute = GRAFT_FLOAT32;
    for (const Lies& one : operands) spec.set(spec.operands++, one.dtype, one.walk);
    add.add(pointwise_key(spec), [spec] { return pointwise_kernel(spec); });
  };
  const Lies number{GRAFT_FLOAT32, kDense}, scalar{GRAFT_FLOAT32, kScalar};
  const Lies scale{GRAFT_FLOAT32, kUniform}, zero{GRAFT_INT32, kUniform};
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8}) {
    const Lies bytes{dtype, kDense};
    put("quantize", {bytes, number, scalar, scalar});
    put("quantize", {bytes, number, scale, zero});
    put("dequantize", {number, bytes, scalar, scalar});
    put("quantized_add", {bytes, bytes, bytes});
  }
  put("fake_quantize", {number, {GRAFT_BOOL, kDense}, number, scalar, scalar, scalar});
  put("fake_quantize",
      {number, {GRAFT_BOOL, kDense}, number, scale, zero, {GRAFT_INT64, kUniform}});
}

const PackEntry pack([](const PackEntry::Sink& sink) {
  const Adder add{sink};
  for (const Op& op : op_table()) {
    if (op.types & kFloatTypes) add_op(add, op, GRAFT_FLOAT32);
    if ((op.types & kFloatTypes) != 0 && op.inputs <= 2) add_op(add, op, GRAFT_BFLOAT16);
    if ((op.types & kIntegerTypes) != 0 && op.inputs == 2) add_op(add, op, GRAFT_INT64);
    if ((op.types & kBoolType) != 0 && op.inputs <= 2) add_op(add, op, GRAFT_BOOL);
  }
  add_copies(add);
  add_quantization(add);
});

}  // namespace

}  // namespace graft
