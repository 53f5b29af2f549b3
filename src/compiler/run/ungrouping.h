// src/compiler/run/ungrouping.h: groups that nothing computes as one.
#pragma once

#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"
#include "compiler/nodes/execution_host.h"
#include "runtime/driver/error.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// Products that no library call describes run outside with their epilogue behind them; groups
// without a kernel fall apart. effects: the graph's, which groups do not change.
void take_apart(const Effects& effects, Graph* graph);

// Compiles the kernels of what is left, side by side, and takes the groups apart whose kernel the
// device lacks, whose compiler rejects it, or whose launch it refuses: their nodes run outside,
// where they may fall back; the host is told why. Throws what get_kernel throws of other failures.
void take_apart_on(Stream& stream, const Effects& effects, Graph* graph, ExecutionHost& host);

// Thrown where a device turns out to lack what a group needs, before anything was queued.
struct LackingGroup {
  std::vector<NodeId> nodes;
  Error why;
};

// The graph without this group, whose nodes run outside then. REQUIRES: it has one of these nodes.
Graph without(Graph graph, const LackingGroup& lacking);

}  // namespace graft::compiler
