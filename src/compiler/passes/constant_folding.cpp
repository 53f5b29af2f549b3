// src/compiler/passes/constant_folding.cpp: the pass that computes what depends on constants alone.
#include <cmath>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/operators.h"
#include "compiler/passes/passes.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

constexpr size_t kMaxElements = 4096;

// A number of either kind: integers stay exact.
struct Number {
  double real = 0;
  int64_t whole = 0;
};

// As a tensor of that dtype stores it; of halves through float32, as kernels do.
Number stored(graft_dtype dtype, bool from_integer, const Number& given) {
  if (!is_integral(dtype)) {
    const double value = from_integer ? static_cast<double>(given.whole) : given.real;
    if (dtype == GRAFT_BOOL) return {value != 0 ? 1.0 : 0.0, 0};
    const double single = is_half(dtype) ? Scalar::of(GRAFT_FLOAT32, value).real() : value;
    return {Scalar::of(dtype, single).real(), 0};
  }
  const uint64_t bits = static_cast<uint64_t>(given.whole);
  const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
  if (dtype == GRAFT_UINT8) return {0, static_cast<int64_t>(bits & 255)};
  return {0, static_cast<int64_t>(bits << unused) >> unused};
}

class Folding {
 public:
  explicit Folding(Graph& graph) : graph_(graph), effects_(graph) {}

  int run() {
    std::vector<bool> escaping(graph_.values.size(), false);
    for (const Output& output : graph_.outputs) {
      if (output.value != kNone) escaping[effects_.root[output.value]] = true;
    }
    int changes = 0;
    for (NodeId id : graph_.order) {
      const Node& node = graph_.nodes[id];
      if (node.has_effect() || node.results.size() != 1 || node.results[0] == kNone) continue;
      const ValueId result = node.results[0];
      const ValueId root = effects_.root[result];
      if (escaping[root] || effects_.written[root]) continue;
      if (is_complex(graph_.values[result].type.dtype) || !fold(node)) continue;
      turn_constant(result);
      ++changes;
    }
    std::erase_if(graph_.order, [&](NodeId id) {
      const Node& node = graph_.nodes[id];
      return node.results.size() == 1 && node.results[0] != kNone &&
             graph_.values[node.results[0]].origin == Origin::kConstant;
    });
    return changes;
  }

 private:
  void turn_constant(ValueId result) {
    GraphValue& value = graph_.values[result];
    value.origin = Origin::kConstant;
    value.node = kNone;
    for (const Number& number : elements_) {
      if (is_integral(value.type.dtype))
        value.whole.push_back(number.whole);
      else
        value.data.push_back(number.real);
    }
    graph_.constants.push_back(result);
  }

  const GraphValue* constant(const Argument& argument) const {
    if (argument.kind != Argument::Kind::kValue) return nullptr;
    const GraphValue& value = graph_.values[argument.value];
    return value.origin == Origin::kConstant && value.external.empty() ? &value : nullptr;
  }

  size_t elements_of(const GraphValue& value) const {
    return value.data.size() + value.whole.size();
  }

  bool fold(const Node& node) {
    elements_.clear();
    if (fills(node)) return true;
    if (node.arguments.empty()) return false;
    if (node.views != kNone) {
      const GraphValue* whole = constant(node.arguments[0]);
      if (whole == nullptr || elements_of(*whole) != 1 || class_of(node) != OpClass::kView) {
        return false;
      }
      elements_ = {element(*whole, 0)};
      return true;
    }
    return computes(node);
  }

  // full, zeros and ones, and the same like another tensor.
  bool fills(const Node& node) {
    static constexpr struct {
      const char* op;
      int number;  // the argument with the number; -1, -2: 0 and 1
    } kFills[] = {{"aten.full.default", 1},          {"aten.full_like.default", 1},
                  {"aten.scalar_tensor.default", 0}, {"aten.zeros.default", -1},
                  {"aten.zeros_like.default", -1},   {"aten.ones.default", -2},
                  {"aten.ones_like.default", -2},    {"aten.new_zeros.default", -1},
                  {"aten.new_ones.default", -2}};
    for (const auto& row : kFills) {
      if (node.op != row.op) continue;
      Argument number = Argument::of_integer(row.number == -2 ? 1 : 0);
      if (row.number >= 0) {
        const Argument* given = argument(node, static_cast<size_t>(row.number), "fill_value");
        if (given == nullptr) return false;
        number = *given;
      }
      return fill(graph_.values[node.results[0]].type.dtype, number);
    }
    return false;
  }

  bool fill(graft_dtype dtype, const Argument& number) {
    double real = 0;
    const bool integer = number.kind == Argument::Kind::kInteger && number.integer.is_constant();
    if (!integer && !number_of(number, &real)) return false;
    if (is_integral(dtype) && !integer) {
      if (!(std::abs(real) < 0x1p53)) return false;
      elements_ = {stored(dtype, true, {0, static_cast<int64_t>(real)})};
    } else {
      elements_ = {stored(dtype, integer, {real, number.integer.constant_part()})};
    }
    return true;
  }

  Number element(const GraphValue& value, size_t i) const {
    if (!value.whole.empty()) return {0, value.whole[value.whole.size() == 1 ? 0 : i]};
    return {value.data[value.data.size() == 1 ? 0 : i], 0};
  }

  // Operations that IEEE defines to the last bit, on operands of one dtype, and casts.
  bool computes(const Node& node) {
    OpRowBinding use;
    if (!row_use(graph_, node, &use)) return false;
    const TensorType& type = graph_.values[node.results[0]].type;
    const std::string row = use.row->name;
    const bool cast = row == "positive" || row == "to_bool";
    static constexpr const char* kExact[] = {"plain_add", "plain_sub", "mul", "div", "neg", "sqrt"};
    bool exact = cast;
    for (const char* name : kExact) exact = exact || (row == name && type.dtype != GRAFT_BOOL);
    if (!exact) return false;
    size_t count = 1;
    for (const Argument& input : use.inputs) {
      if (input.kind != Argument::Kind::kValue) continue;
      const GraphValue* value = constant(input);
      if (value == nullptr || (!cast && value->type.dtype != type.dtype)) return false;
      if (elements_of(*value) != 1 && value->type != type && !cast) return false;
      if (cast && (value->type.sizes != type.sizes || !type.row_major())) return false;
      count = std::max(count, elements_of(*value));
    }
    if (count > kMaxElements) return false;
    for (size_t i = 0; i < count; ++i) {
      Number number;
      if (!compute(row, use, type.dtype, i, &number)) return false;
      elements_.push_back(number);
    }
    return true;
  }

  bool compute(const std::string& row, const OpRowBinding& use, graft_dtype dtype, size_t i,
               Number* out) {
    Number x[2];
    bool from_integer = is_integral(dtype);
    for (size_t k = 0; k < use.inputs.size(); ++k) {
      if (const GraphValue* value = constant(use.inputs[k])) {
        x[k] = element(*value, i);
        from_integer = !value->whole.empty();
      } else if (is_integral(dtype)) {
        if (use.inputs[k].kind != Argument::Kind::kInteger) return false;
        x[k].whole = use.inputs[k].integer.constant_part();
      } else {
        if (!number_of(use.inputs[k], &x[k].real)) return false;
        // Kernels take numbers in the type that they compute in.
        if (dtype != GRAFT_FLOAT64) x[k].real = Scalar::of(GRAFT_FLOAT32, x[k].real).real();
      }
    }
    if (row == "positive" || row == "to_bool") {
      const bool real_to_integer = is_integral(dtype) && !from_integer;
      if (real_to_integer && !(std::abs(x[0].real) < 0x1p31)) return false;
      if (real_to_integer) x[0].whole = static_cast<int64_t>(x[0].real);
      *out = stored(dtype, from_integer || real_to_integer, x[0]);
      return true;
    }
    if (is_integral(dtype)) return whole_number(row, x, dtype, out);
    Number result;
    if (row == "plain_add") result.real = x[0].real + x[1].real;
    if (row == "plain_sub") result.real = x[0].real - x[1].real;
    if (row == "mul") result.real = x[0].real * x[1].real;
    if (row == "div") result.real = x[0].real / x[1].real;
    if (row == "neg") result.real = -x[0].real;
    if (row == "sqrt") result.real = std::sqrt(x[0].real);
    *out = stored(dtype, false, result);
    return true;
  }

  bool whole_number(const std::string& row, const Number* x, graft_dtype dtype, Number* out) const {
    const uint64_t a = static_cast<uint64_t>(x[0].whole), b = static_cast<uint64_t>(x[1].whole);
    uint64_t result = 0;
    if (row == "plain_add")
      result = a + b;
    else if (row == "plain_sub")
      result = a - b;
    else if (row == "mul")
      result = a * b;
    else if (row == "neg")
      result = 0 - a;
    else
      return false;
    *out = stored(dtype, true, {0, static_cast<int64_t>(result)});
    return true;
  }

  Graph& graph_;
  const Effects effects_;
  std::vector<Number> elements_;
};

}  // namespace

int fold_constants(Graph& graph) {
  const int changes = Folding(graph).run();
  if (changes > 0) remove_dead_code(graph);
  return changes;
}

}  // namespace graft::compiler
