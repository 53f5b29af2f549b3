// src/compiler/passes/pass.h: a step of the compiler from graph to graph, and running many.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// Changes the graph to an equal one and returns how many changes it made. Results stay equal bit
// for bit unless passes.h says otherwise.
struct Pass {
  const char* name;
  int (*run)(Graph& graph);
};

// Called with the graph before the first pass (stage "input") and after each one.
using StageHook = std::function<void(std::string_view stage, const Graph& graph, int changes)>;

// The passes of a mode, in their order. Static storage.
GRAFT_EXPORT std::span<const Pass> inference_passes();
GRAFT_EXPORT std::span<const Pass> training_passes();
// What comes before inference_passes() on a device whose library prefers channels-last
// (prefers_channels_last() of kernels/convolution/convolution.h).
GRAFT_EXPORT std::span<const Pass> layout_passes();
// Of both, those that make a graph smaller and keep its operators: what a vendor's compiler gets.
GRAFT_EXPORT std::span<const Pass> cleaning_passes();
// The last ones of both: those that write groups and the order.
GRAFT_EXPORT std::span<const Pass> grouping_passes();

// Runs passes one after another, verifying the graph before the first and after each. Returns the
// number of changes. Throws Error: INVALID_ARGUMENT for a graph that was wrong before, INTERNAL
// with the pass's name for one that a pass broke; the graph is then as the pass left it.
GRAFT_EXPORT int run_passes(Graph& graph, std::span<const Pass> passes, const StageHook& hook = {});

}  // namespace graft::compiler
