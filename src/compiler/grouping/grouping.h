// src/compiler/grouping/grouping.h: the passes that say what is computed together, and when.
#pragma once

#include "compiler/graph/graph.h"

namespace graft::compiler {

// They write groups, or the order, and change no node; as those of passes.h, each returns how many
// changes it made. What each does: docs/develop/compiler-ir.md.
int fuse_epilogues(Graph& graph);
int fuse(Graph& graph);
int schedule(Graph& graph);

}  // namespace graft::compiler
