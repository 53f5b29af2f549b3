// src/compiler/analysis/operators.h: what the compiler knows about ATen's operators.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/ops/op_table.h"
#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

enum class OpClass : uint8_t {
  kOther,
  kPointwise,    // a row of the op table
  kReduction,    // along given dimensions
  kView,         // results share memory with the first operand
  kCopy,         // the same elements in other memory or another dtype
  kMatmul,       // mm, bmm, addmm, baddbmm
  kConvolution,  // aten.convolution.default
  kRandom
};

// inputs and scalars say what feeds the op table's row, separated by spaces: a position among
// ATen's arguments, or "name:position" for what may come as a keyword, with "=default" where it may
// be left out; "=number" alone is that number.
struct Operator {
  const char* op;  // with its overload
  OpClass cls;
  const char* row = "";      // of the op table, where there is one
  const char* inputs = "";   // operands of the row: tensors or numbers
  const char* scalars = "";  // the row's scalars: numbers
};

// The row of an operator; null for none. Any thread.
const Operator* find_operator(std::string_view op);
OpClass class_of(const Node& node);

// The argument at a position or with that keyword; null when it was left out.
GRAFT_EXPORT const Argument* argument(const Node& node, size_t position,
                                      std::string_view keyword = {});

GRAFT_EXPORT ValueId operand(const Node& node, size_t position);  // kNone: no tensor

// A number as an argument: float, constant integer or bool. False for anything else.
GRAFT_EXPORT bool number_of(const Argument& argument, double* out);

// Whether it was given, and true.
inline bool is_true(const Argument* given) {
  return given != nullptr && given->kind == Argument::Kind::kBool && given->truth;
}

// What the op table's row is fed with for one node.
struct OpRowBinding {
  const Op* row = nullptr;
  graft_dtype compute = GRAFT_FLOAT32;  // half types compute in float32
  std::vector<Argument> inputs;         // values or numbers
  std::vector<double> scalars;
};

// How the op table computes a node; false when it does not.
bool row_use(const Graph& graph, const Node& node, OpRowBinding* out);

}  // namespace graft::compiler
