// src/compiler/passes/constant_folding.cpp: the pass that computes what depends on constants alone.
#include <algorithm>
#include <cmath>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/op_row_binding.h"
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

// Rows that IEEE defines to the last bit, and what they give for integers, which wrap.
struct Exact {
  std::string_view row;
  double (*real)(double, double);
  uint64_t (*whole)(uint64_t, uint64_t);
};
constexpr Exact kExact[] = {
    {"plain_add", [](double a, double b) { return a + b; },
     [](uint64_t a, uint64_t b) { return a + b; }},
    {"plain_sub", [](double a, double b) { return a - b; },
     [](uint64_t a, uint64_t b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }, [](uint64_t a, uint64_t b) { return a * b; }},
    {"neg", [](double a, double) { return -a; }, [](uint64_t a, uint64_t) { return 0 - a; }},
    {"div", [](double a, double b) { return a / b; }, nullptr},
    {"sqrt", [](double a, double) { return std::sqrt(a); }, nullptr}};

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
    int changes = 0;
    for (NodeId id : graph_.order) {
      const Node& node = graph_.nodes[id];
      if (node.has_effect() || node.results.size() != 1 || node.results[0] == kNone) continue;
      const ValueId result = node.results[0];
      const ValueId root = effects_.root[result];
      if (effects_.leaves[root] || effects_.written[root]) continue;
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
      if (whole == nullptr || elements_of(*whole) != 1 || node.op->cls != OpClass::kView) {
        return false;
      }
      elements_ = {element(*whole, 0)};
      return true;
    }
    return computes(node);
  }

  // full, zeros and ones, and the same like another tensor: the last argument is the number.
  bool fills(const Node& node) {
    if (node.op->cls != OpClass::kFill) return false;
    const SchemaArgument& number = node.op->parameters.back();
    const Argument always = Argument::of_integer(static_cast<int64_t>(number.number));
    const Argument* given = number.fixed ? &always : argument(node, number.name);
    return given != nullptr && fill(graph_.values[node.results[0]].type.dtype, *given);
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

  // Exact rows, on operands of one dtype, and casts.
  bool computes(const Node& node) {
    OpRowBinding use;
    if (!row_use(graph_, node, &use)) return false;
    const TensorType& type = graph_.values[node.results[0]].type;
    const bool cast = node.op->cls == OpClass::kCopy;
    const auto exact = std::ranges::find(kExact, std::string_view(use.row->name), &Exact::row);
    if (!cast && (exact == std::end(kExact) || type.dtype == GRAFT_BOOL)) return false;
    size_t count = 1;
    for (const Argument& input : use.inputs) {
      if (input.kind != Argument::Kind::kValue) continue;
      const GraphValue* value = constant(input);
      if (value == nullptr || (!cast && value->type.dtype != type.dtype)) return false;
      if (elements_of(*value) != 1 && value->type != type && !cast) return false;
      if (cast && (value->type.sizes != type.sizes || !type.row_major())) return false;
      if (elements_of(*value) == 0) return true;
      count = std::max(count, elements_of(*value));
    }
    if (count > kMaxElements) return false;
    for (size_t i = 0; i < count; ++i) {
      Number number;
      if (!compute(cast ? nullptr : exact, use, type.dtype, i, &number)) return false;
      elements_.push_back(number);
    }
    return true;
  }

  // exact: null for casts.
  bool compute(const Exact* exact, const OpRowBinding& use, graft_dtype dtype, size_t i,
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
    if (exact == nullptr) {
      const bool real_to_integer = is_integral(dtype) && !from_integer;
      if (real_to_integer && !(std::abs(x[0].real) < 0x1p31)) return false;
      if (real_to_integer) x[0].whole = static_cast<int64_t>(x[0].real);
      *out = stored(dtype, from_integer || real_to_integer, x[0]);
      return true;
    }
    const bool whole = is_integral(dtype);
    if (whole && exact->whole == nullptr) return false;
    Number result;
    if (whole) {
      result.whole = static_cast<int64_t>(
          exact->whole(static_cast<uint64_t>(x[0].whole), static_cast<uint64_t>(x[1].whole)));
    } else {
      result.real = exact->real(x[0].real, x[1].real);
    }
    *out = stored(dtype, whole, result);
    return true;
  }

  Graph& graph_;
  const Effects effects_;
  std::vector<Number> elements_;
};

}  // namespace

int fold_constants(Graph& graph) { return change_and_clean<Folding>(graph); }

}  // namespace graft::compiler
