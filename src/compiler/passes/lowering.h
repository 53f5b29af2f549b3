// src/compiler/passes/lowering.h: from a traced graph to what executors take.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/passes/vendor_graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

enum class Mode : uint8_t { kTraining, kInference };

struct Lowered {
  std::optional<Graph> prologue;  // what depends on parameters alone; inference only
  Graph main;                     // takes the graph's inputs, then what the prologue gives
  std::vector<size_t> taken;      // by the prologue's inputs: which of the graph's each is
};

// Runs all passes. channels_last: whether images may be laid out so: the device's library prefers
// it (kernels/convolution/convolution.h), and in training whoever compiles the other graph looks at
// the types of what this one saves. Throws what run_passes throws.
GRAFT_EXPORT Lowered lower(Graph graph, Mode mode, bool channels_last);

// For a device: its vendor's compiler takes what it can of the graph, then lower() lays images out
// channels-last where may_lay_out and the device's library prefers it. Keep vendor until the
// executors are made. Throws what take_vendor_graphs and lower() throw.
struct DeviceGraphs {
  VendorGraphs vendor;
  Lowered lowered;
};
GRAFT_EXPORT DeviceGraphs lower_for(OpenDevice& device, Graph graph, Mode mode, bool may_lay_out);

}  // namespace graft::compiler
