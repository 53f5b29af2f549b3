// src/compiler/passes/cast_hoisting.cpp: the pass that casts before it permutes.
#include "compiler/analysis/effects.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

bool permutes(const Node& node) { return node.is(kT, kTranspose, kPermute); }

}  // namespace

int hoist_casts(Graph& graph) {
  const Effects effects(graph);
  std::vector<NodeId> order;
  int changes = 0;
  for (NodeId id : graph.order) {
    order.push_back(id);
    const Node cast = graph.nodes[id];
    const ValueId from = operand(cast, 0);
    if (!cast.is(kToCopy) || cast.has_effect() || from == kNone) continue;
    const NodeId view_id = graph.values[from].node;
    if (view_id == kNone || !permutes(graph.nodes[view_id])) continue;
    const Node view = graph.nodes[view_id];
    const ValueId result = cast.results[0], source = view.views;
    const GraphValue whole = graph.values[source];
    const TensorType type = graph.values[result].type;
    const bool dense = whole.type.row_major() && type.strides == graph.values[from].type.strides;
    if (source == kNone || !dense || effects.escapes(result)) continue;
    if (!effects.stable(source) || !effects.stable(result)) continue;
    std::vector<Argument> arguments = cast.arguments;
    arguments[0] = Argument::of(source);
    const NodeId hoisted =
        graph.add_node(cast.op, arguments, whole.name + "_cast",
                       {type.dtype, whole.type.sizes, whole.type.strides}, cast.source);
    const ValueId cast_value = graph.nodes[hoisted].results[0];
    graph.nodes[hoisted].notes = cast.notes;
    Node& turned = graph.nodes[id];
    turned.op = view.op;
    turned.arguments = view.arguments;
    turned.arguments[0] = Argument::of(cast_value);
    turned.views = cast_value;
    order.insert(order.end() - 1, hoisted);
    ++changes;
  }
  graph.order = order;
  return changes;
}

}  // namespace graft::compiler
