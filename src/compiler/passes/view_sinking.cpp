// src/compiler/passes/view_sinking.cpp: the pass that reshapes products after their epilogue.
#include "compiler/analysis/effects.h"
#include "compiler/analysis/operators.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

bool reshapes(const Node& node) {
  return node.op == "aten.view.default" || node.op == "aten._unsafe_view.default" ||
         node.op == "aten.reshape.default";
}

class ViewSinking {
 public:
  explicit ViewSinking(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    int changes = 0;
    const std::vector<NodeId> order = graph_.order;
    for (NodeId id : order) {
      for (size_t position : {0, 1}) {
        if (!sinks(id, position)) continue;
        sink(id, position);
        ++changes;
        break;
      }
      rewriter_.keep(id);
    }
    rewriter_.finish();
    return changes;
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
    if (!made && class_of(graph_.nodes[maker]) != OpClass::kMatmul) return kNone;
    if (!made && (graph_.nodes[maker].has_effect() || !effects_.stable(view.views))) return kNone;
    if (!type(seen).row_major() || !type(view.views).row_major()) return kNone;
    return view.views;
  }

  bool sinks(NodeId id, size_t position) const {
    const Node& node = graph_.nodes[id];
    const bool adds = node.op == "aten.add.Tensor";
    const bool one = node.op == "aten.relu.default" || node.op == "aten.mul.Tensor" ||
                     node.op == "aten.mul.Scalar";
    if ((!adds && !one) || (one && position > 0)) return false;
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
      const ValueId view =
          rewriter_.add("aten.view.default", {Argument::of(other), list_of(whole.sizes)}, "other",
                        type(other).dtype, whole.sizes);
      graph_.nodes[graph_.values[view].node].views = other;
      arguments[1 - position].value = view;
    }
    const ValueId made =
        rewriter_.add(node.op.c_str(), arguments, "flat", whole.dtype, whole.sizes);
    graph_.nodes[graph_.values[made].node].notes = node.notes;
    Node& turned = graph_.nodes[id];
    turned.op = "aten.view.default";
    turned.arguments = {Argument::of(made), list_of(type(node.results[0]).sizes)};
    turned.views = made;
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int sink_views(Graph& graph) {
  const int changes = ViewSinking(graph).run();
  if (changes > 0) remove_dead_code(graph);
  return changes;
}

}  // namespace graft::compiler
