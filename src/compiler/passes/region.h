// src/compiler/passes/region.h: parts of a graph that can each run as one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

// Views may be computed wherever they are used, so no region has one: taken ones come along with
// the nodes that read them.
struct Regions {
  std::vector<std::vector<NodeId>> regions;  // their nodes in program order
  // By node: ascending along what must follow what, equal within a region. Even for taken nodes:
  // of one moment those run first, then views.
  std::vector<int64_t> moments;
};

// Parts the taken nodes into regions, few and large: no way leads out of a region and back, and no
// two need one another. If nothing outside lies between taken nodes, one region has all of them;
// its nodes need not be connected. taken: by node; none that is has an effect.
Regions find_regions(const Graph& graph, const Effects& effects, const std::vector<bool>& taken);

// Calls visit(ValueId) for each value that the node reads, past taken views to what these show.
template <class Visit>
void each_base(const Graph& graph, const std::vector<bool>& taken, const Node& node,
               const Visit& visit) {
  each_value(node.arguments, [&](ValueId value) {
    const NodeId maker = graph.values[value].node;
    const bool shown = maker != kNone && taken[maker] && graph.nodes[maker].views != kNone;
    if (shown)
      each_base(graph, taken, graph.nodes[maker], visit);
    else
      visit(value);
  });
}

}  // namespace graft::compiler
