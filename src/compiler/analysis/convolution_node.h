// src/compiler/analysis/convolution_node.h: how a node convolves.
#pragma once

#include <optional>

#include "compiler/graph/graph.h"
#include "kernels/convolution/convolution.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// Of a convolution or its gradients; none where its input has not 1 to 3 dimensions beside batch
// and channels, or where a number is not constant.
GRAFT_EXPORT std::optional<ConvolutionParameters> convolution_parameters(const Graph& graph,
                                                                         const Node& node);

}  // namespace graft::compiler
