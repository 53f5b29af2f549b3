// src/compiler/nodes/moves.h: nodes that join, count, add up, pool and pick elements.
#pragma once

#include "compiler/nodes/direct_node.h"

namespace graft::compiler {

// Of cat, copy_, reshape that copies, arange, cumsum, sums, means and softmax over dimensions that
// no group takes, max_pool2d with its gradient, and topk; empty for other nodes, and for layouts or
// dtypes that the kernels do not take. As direct_node().
DirectNode move_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
