// src/compiler/nodes/training.h: nodes of training: a loss, and gradients of what is no image.
#pragma once

#include "compiler/nodes/direct_node.h"

namespace graft::compiler {

// Of nll_loss and of the gradients of nll_loss, of layer norm and of embedding; empty for other
// nodes, and for layouts or dtypes that the kernels do not take. As direct_node().
DirectNode training_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
