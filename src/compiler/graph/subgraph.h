// src/compiler/graph/subgraph.h: a part of a graph as a graph of its own.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace graft::compiler {

struct Subgraph {
  Graph graph;
  std::vector<ValueId> inputs;  // of the whole graph, by the part's inputs
};

// nodes: in program order, none with an effect. outputs: results of theirs. What they use from
// outside becomes an input, as do constants that the caller brings; other constants come along.
// Symbols that the part uses are integers of its calls, in the whole graph's order.
Subgraph cut_out(const Graph& whole, const std::vector<NodeId>& nodes,
                 const std::vector<ValueId>& outputs, std::string name);

}  // namespace graft::compiler
