// src/compiler/nodes/images.h: nodes of networks over images, calling their kernels
// straight.
#pragma once

#include "compiler/nodes/direct_node.h"

namespace graft::compiler {

// Of batch norm, of its gradients, of convolutions that no library call takes and of
// their gradients; empty for other nodes, and where the kernels do not take the node's layouts or
// dtypes. As direct_node().
DirectNode direct_image_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
