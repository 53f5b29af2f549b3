// src/compiler/nodes/indexing.h: nodes that read elements at positions that come from data.
#pragma once

#include "compiler/nodes/direct_node.h"

namespace graft::compiler {

// Of embedding, index_select, gather, scatter of a tensor, index and index_put with integers; empty
// for other nodes, and for layouts or dtypes that the kernels do not take. As direct_node().
DirectNode indexing_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
