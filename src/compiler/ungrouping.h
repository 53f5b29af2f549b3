// src/compiler/ungrouping.h: groups that nothing computes as one.
#pragma once

#include "compiler/graph.h"

namespace graft::compiler {

// Products that no library call describes run outside with their epilogue behind them; groups
// without a kernel fall apart.
void take_apart(Graph* graph);

}  // namespace graft::compiler
