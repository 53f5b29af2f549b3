// src/compiler/passes/view_sinking.cpp: the pass that reshapes products after their epilogue.
#include "compiler/analysis/effects.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/analysis/views.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class ViewSinking {
 public:
  explicit ViewSinking(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    return rewriter_.each([&](NodeId id) {
      const bool first = sinks(id, 0);
      if (!first && !sinks(id, 1)) return 0;
      sink(id, first ? 0 : 1);
      return 1;
    });
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.values[value].type; }

  bool used_once(ValueId value) const {
    if (value >= effects_.users.size()) return true;  // made by this pass
    return effects_.users[value].size() == 1 && !effects_.escapes(value);
  }

  // The product, or what this pass made of one, that an operand is a view of.
  ValueId flat(const Node& node, size_t position) const {
    const ValueId seen = operand(node, position);
    if (seen == kNone || graph_.values[seen].node == kNone) return kNone;
    const Node& view = graph_.nodes[graph_.values[seen].node];
    if (!reshapes(view) || view.views == kNone || !view.writes.empty()) return kNone;
    const NodeId maker = graph_.values[view.views].node;
    if (maker == kNone || !used_once(seen) || !used_once(view.views)) return kNone;
    const bool made = view.views >= effects_.users.size();
    if (!made && graph_.nodes[maker].op->cls != OpClass::kMatmul) return kNone;
    if (!made && (graph_.nodes[maker].has_effect() || !effects_.stable(view.views))) return kNone;
    if (!type(seen).row_major() || !type(view.views).row_major()) return kNone;
    return view.views;
  }

  bool sinks(NodeId id, size_t position) const {
    const Node& node = graph_.nodes[id];
    const bool one = node.is(kRelu, kMulTensor, kMulScalar);
    if ((!node.is(kAddTensor) && !one) || (one && position > 0)) return false;
    if (node.has_effect() || node.results.size() != 1 || node.results[0] == kNone) return false;
    const ValueId product = flat(node, position), result = node.results[0];
    if (product == kNone || !effects_.stable(result)) return false;
    if (type(result) != type(operand(node, position))) return false;
    const ValueId other = operand(node, 1 - position);
    if (other == kNone) return true;
    if (one || other == operand(node, position) || !effects_.stable(other)) return false;
    return is_row(other, product) || type(other) == type(result);
  }

  // One number for each column: broadcasts the same in both shapes.
  bool is_row(ValueId value, ValueId product) const {
    return type(value).sizes.size() == 1 && type(value).sizes[0] == type(product).sizes.back();
  }

  void sink(NodeId id, size_t position) {
    const Node node = graph_.nodes[id];
    const ValueId product = flat(node, position), other = operand(node, 1 - position);
    const TensorType whole = type(product);
    rewriter_.begin(id);
    std::vector<Argument> arguments = node.arguments;
    arguments[position].value = product;
    if (other != kNone && !is_row(other, product)) {
      arguments[1 - position].value = rewriter_.reshape(other, whole.sizes, "other");
    }
    const ValueId made = rewriter_.add(node.op, arguments, "flat", whole);
    graph_.nodes[graph_.values[made].node].notes = node.notes;
    turn_into_view(graph_, id, made);
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int sink_views(Graph& graph) { return change_and_clean<ViewSinking>(graph); }

}  // namespace graft::compiler
