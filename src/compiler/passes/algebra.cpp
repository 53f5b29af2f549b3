// src/compiler/passes/algebra.cpp: the pass of algebraic rules that hold for every number.
#include <cmath>

#include "compiler/analysis/replacement.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class Algebra {
 public:
  explicit Algebra(Graph& graph) : graph_(graph), replacement_(graph) {}

  int run() {
    int changes = 0;
    for (NodeId id : graph_.order) {
      Node& node = graph_.nodes[id];
      if (node.has_effect() || node.results.size() != 1 || node.results[0] == kNone) continue;
      const ValueId by = equal_to(node);
      if (by != kNone && replacement_.may(graph_, node.results[0], by)) {
        replacement_.set(node.results[0], by);
      } else {
        changes += square(node);
      }
    }
    return changes + replacement_.apply(graph_);
  }

 private:
  // The number that an operand is everywhere.
  bool number_at(const Node& node, size_t position, double* out) const {
    const Argument* given = argument(node, position);
    if (given == nullptr) return false;
    if (given->kind != Argument::Kind::kValue) return number_of(*given, out);
    const GraphValue& value = graph_.values[given->value];
    if (value.origin != Origin::kConstant || !value.external.empty()) return false;
    if (value.data.size() + value.whole.size() != 1) return false;
    *out = value.data.empty() ? static_cast<double>(value.whole[0]) : value.data[0];
    return value.whole.empty() || std::abs(*out) < 0x1p53;
  }

  bool number_is(const Node& node, size_t position, double number) const {
    double given;
    return number_at(node, position, &given) && given == number &&
           std::signbit(given) == std::signbit(number);
  }

  // x + 0 turns -0.0 into 0.0, x + -0.0 keeps every float.
  bool adds_nothing(const Node& node, size_t position, bool subtracts) const {
    const bool floating = is_floating(graph_.values[node.results[0]].type.dtype);
    double factor;
    if (!number_of(node, "alpha", &factor) || factor != 1) return false;
    const double zero = floating && !subtracts ? -0.0 : 0.0;
    return number_is(node, position, zero);
  }

  // What computed an operand, when it has no effect.
  const Node* maker(const Node& node, size_t position) const {
    const ValueId value = operand(node, position);
    if (value == kNone) return nullptr;
    const NodeId id = graph_.values[replacement_.now(value)].node;
    return id == kNone || graph_.nodes[id].has_effect() ? nullptr : &graph_.nodes[id];
  }

  // An operand, or an operand's operand, that the result always equals; its type is checked later.
  ValueId equal_to(const Node& node) const {
    if (node.is(kMulTensor, kMulScalar) && number_is(node, 1, 1)) return operand(node, 0);
    if (node.is(kMulTensor) && number_is(node, 0, 1)) return operand(node, 1);
    if (node.is(kDivTensor, kDivScalar, kPowScalar) && number_is(node, 1, 1)) {
      return operand(node, 0);
    }
    if (node.is(kAddTensor, kAddScalar) && adds_nothing(node, 1, false)) return operand(node, 0);
    if (node.is(kAddTensor) && adds_nothing(node, 0, false)) return operand(node, 1);
    if (node.is(kSubTensor, kSubScalar) && adds_nothing(node, 1, true)) return operand(node, 0);
    if (node.is(kWhere) && operand(node, 1) == operand(node, 2)) return operand(node, 1);
    const Node* inner = maker(node, 0);
    if (inner == nullptr || inner->op != node.op) return kNone;
    if (node.is(kNeg, kLogicalNot)) return operand(*inner, 0);
    if (node.is(kRelu, kAbs, kFloor, kCeil, kRound, kTrunc)) return operand(node, 0);
    return cast_back(node, *inner);
  }

  // A cast to a dtype that holds every number of the first one, and back.
  ValueId cast_back(const Node& node, const Node& inner) const {
    if (!node.is(kToCopy)) return kNone;
    const ValueId from = operand(inner, 0);
    if (from == kNone || inner.results.size() != 1) return kNone;
    const graft_dtype narrow = graph_.values[from].type.dtype;
    const graft_dtype wide = graph_.values[inner.results[0]].type.dtype;
    const bool floats = is_half(narrow) ? wide == GRAFT_FLOAT32 || wide == GRAFT_FLOAT64
                                        : narrow == GRAFT_FLOAT32 && wide == GRAFT_FLOAT64;
    const bool whole = is_integral(narrow) && is_integral(wide) && is_signed(wide) &&
                       size_of(wide) > size_of(narrow);
    return floats || whole ? from : kNone;
  }

  // PyTorch computes x ^ 2 as x * x.
  int square(Node& node) {
    if (!node.is(kPowScalar) || !number_is(node, 1, 2)) return 0;
    const ValueId x = operand(node, 0);
    if (graph_.values[x].type.dtype != graph_.values[node.results[0]].type.dtype) return 0;
    node.op = find_operator(kMulTensor);
    node.arguments = {Argument::of(x), Argument::of(x)};
    return 1;
  }

  Graph& graph_;
  Replacement replacement_;
};

}  // namespace

int simplify_algebra(Graph& graph) { return change_and_clean<Algebra>(graph); }

}  // namespace graft::compiler
