// src/deploy/deployable.h: what keeps a graph from running without PyTorch.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// The nodes that only PyTorch could run, as "aten.sort.default (model.py:12)", in the order of the
// program; none: the graph may be deployed. Compiles its kernels for the device. Throws Error what
// the compiler refuses.
GRAFT_EXPORT std::vector<std::string> needs_pytorch(compiler::Graph graph, Device& device);

}  // namespace graft::deploy
