// src/compiler/prologue.h: what a graph computes of its parameters and buffers alone.
#pragma once

#include <optional>

#include "compiler/graph.h"
#include "runtime/export.h"

namespace graft::compiler {

// Takes out of the graph what depends on parameters and buffers that nothing in it writes, on
// constants, and on nothing else: folded weights, casts, packed layouts. It comes back as a graph
// of its own, whose inputs are a part of the first graph's, by name and in their order; its outputs
// become parameters of the first graph, behind its inputs and under the same names. Views alone are
// left where they are, and so is what the graph returns, which its caller may write. None when
// nothing is computed. REQUIRES: no groups yet.
GRAFT_EXPORT std::optional<Graph> take_prologue(Graph& graph);

}  // namespace graft::compiler
