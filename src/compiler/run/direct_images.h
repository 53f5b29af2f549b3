// src/compiler/run/direct_images.h: nodes that train networks over images, calling their kernels
// straight.
#pragma once

#include "compiler/run/direct_node.h"

namespace graft::compiler {

// Of batch norm that trains, of its gradients and of a convolution's; empty for other nodes, and
// where the kernels do not take the node's layouts or dtypes. As direct_node().
DirectNode direct_image_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
