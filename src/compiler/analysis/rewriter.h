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

  // A row-major result of that dtype and size, named after the rewritten node.
  ValueId add(const char* op, std::vector<Argument> arguments, const char* name, graft_dtype dtype,
              const std::vector<Size>& sizes) {
    const NodeId id = graph_.add_node(op, std::move(arguments), stem_ + "_" + name,
                                      {dtype, sizes, row_major_strides(sizes)}, source_);
    order_.push_back(id);
    return graph_.nodes[id].results[0];
  }

  void keep(NodeId node) { order_.push_back(node); }
  // Makes the new order the graph's.
  void finish() { graph_.order = std::move(order_); }

 private:
  Graph& graph_;
  std::string source_, stem_;
  std::vector<NodeId> order_;
};

// Sizes as an argument.
inline Argument list_of(const std::vector<Size>& sizes) {
  Argument list;
  list.kind = Argument::Kind::kList;
  for (const Size& size : sizes) list.list.push_back(Argument::of_integer(size));
  return list;
}

// The value in a dtype: itself, or a cast of it.
inline ValueId cast_to(const Graph& graph, Rewriter& rewriter, ValueId value, graft_dtype dtype,
                       const char* word) {
  if (graph.values[value].type.dtype == dtype) return value;
  Argument wanted = Argument::of_word(word);
  wanted.name = "dtype";
  return rewriter.add("aten._to_copy.default", {Argument::of(value), wanted}, "wide", dtype,
                      graph.values[value].type.sizes);
}

}  // namespace graft::compiler
