// src/compiler/analysis/op_row_binding.cpp: how a row of the op table computes one node.
#include <charconv>
#include <sstream>

#include "compiler/analysis/operators.h"
#include "kernels/pointwise/pointwise.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

// One word of Operator::inputs or scalars: what it names, or its default.
bool pick(const Node& node, const std::string& word, Argument* out) {
  const size_t equals = word.find('='), colon = word.find(':');
  const std::string where = word.substr(0, equals);
  const Argument* found = nullptr;
  if (!where.empty()) {
    const bool named = colon != std::string::npos;
    const size_t position = static_cast<size_t>(std::stoi(named ? where.substr(colon + 1) : where));
    found = argument(node, position, named ? word.substr(0, colon) : "");
  }
  if (found != nullptr) {
    *out = *found;
  } else if (equals != std::string::npos) {
    *out = Argument::of_number(std::stod(word.substr(equals + 1)));
  } else {
    return false;
  }
  return true;
}

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

bool compares(const Op& row) {
  static const auto* names = new std::vector<std::string_view>{
      "eq", "ne", "lt", "le", "gt", "ge", "isnan", "logical_and", "logical_or", "logical_not"};
  for (const std::string_view name : *names) {
    if (name == row.name) return true;
  }
  return false;
}

// gelu and its gradient by the tangent are rows of their own.
const Op* row_of(const Operator& known, const Node& node) {
  const Argument* approximate = argument(node, node.arguments.size(), "approximate");
  const bool tangent = approximate != nullptr && approximate->text == "tanh";
  return find_op(tangent ? std::string(known.row) + "_tanh" : known.row);
}

// Arguments that change what a row computes and that no column names.
bool plain(const Node& node) {
  for (const Argument& given : node.arguments) {
    if (given.name == "approximate" && given.text != "none" && given.text != "tanh") return false;
    if (given.name == "rounding_mode" && given.kind != Argument::Kind::kNone) return false;
  }
  return true;
}

bool words(const Node& node, const char* text, std::vector<Argument>* out) {
  std::istringstream stream{text};
  for (std::string word; stream >> word;) {
    out->emplace_back();
    if (!pick(node, word, &out->back())) return false;
  }
  return true;
}

}  // namespace

const Argument* argument(const Node& node, size_t position, std::string_view keyword) {
  size_t at = 0;
  for (const Argument& given : node.arguments) {
    if (!given.name.empty()) {
      if (given.name == keyword) return &given;
    } else if (at++ == position) {
      return &given;
    }
  }
  return nullptr;
}

ValueId operand(const Node& node, size_t position) {
  const Argument* found = argument(node, position);
  return found != nullptr && found->kind == Argument::Kind::kValue ? found->value : kNone;
}

bool number_of(const Argument& argument, double* out) {
  switch (argument.kind) {
    case Argument::Kind::kFloat:
      *out = argument.number;
      return true;
    case Argument::Kind::kBool:
      *out = argument.truth ? 1 : 0;
      return true;
    case Argument::Kind::kInteger: {
      // Larger ones do not pass through a double unharmed.
      const int64_t whole = argument.integer.constant_part();
      const int64_t limit = int64_t{1} << 53;
      *out = static_cast<double>(whole);
      return argument.integer.is_constant() && whole >= -limit && whole <= limit;
    }
    default:
      return false;
  }
}

bool row_use(const Graph& graph, const Node& node, OpRowBinding* out) {
  const Operator* known = find_operator(node.op);
  if (known == nullptr || *known->row == '\0' || node.results.size() != 1) return false;
  if (node.results[0] == kNone || node.has_effect() || node.views != kNone || !plain(node)) {
    return false;
  }
  *out = {};
  out->row = row_of(*known, node);
  if (out->row == nullptr) return false;
  std::vector<Argument> scalars;
  if (!words(node, known->inputs, &out->inputs) || !words(node, known->scalars, &scalars)) {
    return false;
  }
  for (const Argument& input : out->inputs) {
    double number;
    if (input.kind != Argument::Kind::kValue && !number_of(input, &number)) return false;
  }
  bool unit = scalars.size() == 1;
  for (const Argument& scalar : scalars) {
    if (!number_of(scalar, &out->scalars.emplace_back())) return false;
    unit = unit && out->scalars.back() == 1;
  }
  if (unit && out->row == find_op("add")) out->row = find_op("plain_add"), out->scalars.clear();
  if (unit && out->row == find_op("sub")) out->row = find_op("plain_sub"), out->scalars.clear();
  const graft_dtype result = graph.values[node.results[0]].type.dtype;
  out->compute = compares(*out->row) ? operand_dtype(graph, out->inputs) : result;
  if (known->cls == OpClass::kCopy && result == GRAFT_BOOL) {
    out->row = find_op("to_bool");
    out->compute = operand_dtype(graph, out->inputs);
  }
  if (is_half(out->compute)) out->compute = GRAFT_FLOAT32;
  return !is_complex(out->compute) && computes_in(*out->row, out->compute);
}

}  // namespace graft::compiler
