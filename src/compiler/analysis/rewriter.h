// src/compiler/analysis/rewriter.h: writes several new nodes in place of one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace graft::compiler {

// Adds nodes in front of the one that is being rewritten, with its source line.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  // From now on new nodes stand before this one and are named after its first result.
  void begin(NodeId node) {
    source_ = graph_.nodes[node].source;
    stem_ = graph_.values[graph_.nodes[node].results[0]].name;
  }

  // A result of that type, named after the rewritten node.
  ValueId add(const Operator* op, std::vector<Argument> arguments, const char* name,
              TensorType type);
  ValueId add(OperatorId op, std::vector<Argument> arguments, const char* name, TensorType type) {
    return add(find_operator(op), std::move(arguments), name, std::move(type));
  }
  // A view of a value; the arguments are those behind it.
  ValueId view(OperatorId op, ValueId value, std::vector<Argument> arguments, const char* name,
               TensorType type);
  // All of a row-major value, row-major.
  ValueId reshape(ValueId value, const std::vector<Size>& sizes, const char* name);

  // An elementwise node of values and other arguments: row-major, in the first one's dtype, as
  // large as the values broadcast.
  template <class... Operands>
  ValueId compute(OperatorId op, const char* name, const Operands&... operands) {
    return broadcast(op, name, {as_argument(operands)...});
  }

  // The value in a dtype: itself, or a cast of it.
  ValueId cast(ValueId value, graft_dtype dtype);

  // Visits every node, which then stands behind what visit(id) added; visit() returns how many
  // changes it made. Returns their sum.
  template <class Visit>
  int each(Visit visit) {
    int changes = 0;
    const std::vector<NodeId> order = graph_.order;
    for (NodeId id : order) {
      changes += visit(id);
      keep(id);
    }
    finish();
    return changes;
  }

  void keep(NodeId node) { order_.push_back(node); }
  // Makes the new order the graph's.
  void finish() { graph_.order = std::move(order_); }

 private:
  static Argument as_argument(ValueId value) { return Argument::of(value); }
  static const Argument& as_argument(const Argument& argument) { return argument; }
  ValueId broadcast(OperatorId op, const char* name, std::vector<Argument> operands);

  Graph& graph_;
  std::string source_, stem_;
  std::vector<NodeId> order_;
};

// Makes a node the view that shows all of a row-major value in the sizes of the node's result.
void turn_into_view(Graph& graph, NodeId node, ValueId of);

// What a cast to a dtype is called with.
std::vector<Argument> cast_arguments(ValueId value, graft_dtype dtype);

}  // namespace graft::compiler
