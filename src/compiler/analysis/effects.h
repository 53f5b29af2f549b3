// src/compiler/analysis/effects.h: which values share memory, who writes them, what stays in order.
#pragma once

#include <vector>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// Facts about one state of a graph: make it anew after a change.
struct GRAFT_EXPORT Effects {
  explicit Effects(const Graph& graph);

  // What a value is a view of in the end, or itself. Inputs that alias share the first one's root.
  std::vector<ValueId> root;
  std::vector<bool> written;                // by root: some node writes it
  std::vector<bool> leaves;                 // by root: an output lies in it
  std::vector<std::vector<NodeId>> users;   // by value: nodes that use it, once each, in order
  std::vector<int> output_uses;             // by value: how many outputs it is
  std::vector<std::vector<NodeId>> before;  // by node: nodes that it must follow, once each
  std::vector<std::vector<NodeId>> after;   // the other way
  std::vector<uint32_t> place;              // by node: position in the order; kNone when not in it

  bool stable(ValueId value) const { return !written[root[value]]; }
  bool escapes(ValueId value) const { return output_uses[value] > 0; }
  // What computes a value that one node alone uses; null where it may not be left out.
  const Node* sole_maker(const Graph& graph, ValueId value) const;
};

}  // namespace graft::compiler
