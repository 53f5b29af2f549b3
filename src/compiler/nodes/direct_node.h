// src/compiler/nodes/direct_node.h: nodes of a compiled graph that call their kernel straight.
#pragma once

#include <functional>

#include "compiler/nodes/execution_host.h"

namespace graft::compiler {

// Queues one node: its results go to the places that the call names, with no tensor and no copy in
// between. Random nodes draw from the host's numbers.
using DirectNode = std::function<void(const ExternalCall&, ExecutionHost&, Stream&)>;

// Of dropout that trains, of attention without dropout, of its gradients in float32, and of what
// images.h, indexing.h, moves.h and training.h name; empty for other nodes. What it throws is an
// Error: where that lacks_kernel(), the host must run the node.
DirectNode direct_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler
