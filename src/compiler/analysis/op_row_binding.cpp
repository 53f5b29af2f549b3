// src/compiler/analysis/op_row_binding.cpp: how a row of the op table computes one node.
#include "compiler/analysis/op_row_binding.h"

#include <algorithm>

#include "kernels/pointwise/pointwise.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

// PyTorch's promotion among tensors of one kind; the larger of two kinds wins.
int rank_of(graft_dtype dtype) {
  if (dtype == GRAFT_BOOL) return 0;
  if (dtype == GRAFT_UINT8) return 1;
  if (is_integral(dtype)) return 2 + static_cast<int>(size_of(dtype));
  if (is_half(dtype)) return 16;
  return dtype == GRAFT_FLOAT32 ? 17 : dtype == GRAFT_FLOAT64 ? 18 : 32;
}

// What the operands of a comparison are computed in. 0-dim tensors and numbers raise the kind only.
graft_dtype operand_dtype(const Graph& graph, const std::vector<Argument>& inputs) {
  graft_dtype best = GRAFT_BOOL;
  bool real = false, any = false;
  for (const Argument& input : inputs) {
    real = real || input.kind == Argument::Kind::kFloat;
    if (input.kind != Argument::Kind::kValue) continue;
    const graft_dtype dtype = graph.values[input.value].type.dtype;
    if (!any || rank_of(dtype) > rank_of(best)) best = dtype;
    any = true;
  }
  if (real && !is_floating(best)) return GRAFT_FLOAT32;
  const bool integer = !any || best == GRAFT_BOOL;
  for (const Argument& input : inputs) {
    if (integer && input.kind == Argument::Kind::kInteger) return GRAFT_INT64;
  }
  return best;
}

// Whether an argument is what a row asks for, or is left out where it may be.
bool holds(const SchemaArgument& condition, const Argument* given) {
  if (condition.text.empty()) return true;
  if (given == nullptr) return !condition.needed;
  double number;
  if (number_of(*given, &number)) return number == condition.number;
  return given->kind == Argument::Kind::kNone ? condition.text == "none"
                                              : given->text == condition.text;
}

// Feeds a row's operands from the node's arguments.
bool feed(const Node& node, const RowCandidate& candidate, OpRowBinding* out) {
  out->row = candidate.row;
  out->inputs.assign(candidate.row->inputs, {});
  out->scalars.assign(candidate.row->scalars, 0);
  for (size_t i = 0; i < candidate.parameters.size(); ++i) {
    const SchemaArgument& parameter = candidate.parameters[i];
    const Argument* given = parameter.fixed ? nullptr : argument(node, i, parameter.name);
    if (parameter.operand < 0) {
      if (!holds(parameter, given)) return false;
      continue;
    }
    if (given == nullptr && parameter.text.empty()) return false;
    double number = parameter.number;
    const bool numeric = given == nullptr || number_of(*given, &number);
    const size_t operand = static_cast<size_t>(parameter.operand);
    if (operand >= out->inputs.size()) {
      if (!numeric) return false;
      out->scalars[operand - out->inputs.size()] = number;
    } else {
      if (given == nullptr || (!numeric && given->kind != Argument::Kind::kValue)) return false;
      out->inputs[operand] = *given;
    }
  }
  return true;
}

}  // namespace

bool row_use(const Graph& graph, const Node& node, OpRowBinding* out) {
  if (node.results.size() != 1 || node.results[0] == kNone) return false;
  if (node.has_effect() || node.views != kNone) return false;
  const bool fed = std::ranges::any_of(
      node.op->rows, [&](const RowCandidate& candidate) { return feed(node, candidate, out); });
  if (!fed) return false;
  const graft_dtype result = graph.values[node.results[0]].type.dtype;
  const bool tests = (out->row->types & kGivesBool) != 0;
  const bool casts_to_bool = node.op->cls == OpClass::kCopy && result == GRAFT_BOOL;
  out->compute = tests || casts_to_bool ? operand_dtype(graph, out->inputs) : result;
  if (casts_to_bool) out->row = find_op("to_bool");
  if (is_half(out->compute)) out->compute = GRAFT_FLOAT32;
  return !is_complex(out->compute) && computes_in(*out->row, out->compute);
}

}  // namespace graft::compiler
