// src/compiler/passes/vendor_graph.h: gives parts of a graph to the compiler of the device's
// vendor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/cache/executable_cache.h"
#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// The node that stands for a part: graft.vendor_graph("<its text>", [tensors], [symbols]), by the
// text's inputs, outputs and symbols. Passes know nothing of it; executors run it as one step.
inline constexpr const char* kVendorGraph = "graft.vendor_graph";

struct VendorGraphs {
  std::vector<std::shared_ptr<const Executable>> kept;  // for executors that are made meanwhile
  std::vector<std::string> problems;  // what the user should hear, a sentence each
};

// Offers the graph to graft.graph_compiler where the driver has it, and replaces what it takes and
// compiles by such nodes; what it refuses stays as it is. Random nodes, nodes with effects and
// those that read numbers of the host are never given away. Before, passes that round nothing
// differently make the graph smaller. Throws Error on a lost device.
GRAFT_EXPORT VendorGraphs take_vendor_graphs(Graph* graph, OpenDevice& device);

}  // namespace graft::compiler
