// src/compiler/run/sized_run.h: what an executor keeps of runs with certain sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/plan/memory_plan.h"
#include "compiler/plan/step_memory.h"
#include "compiler/plan/symbol_values.h"
#include "compiler/run/replay_segment.h"
#include "compiler/run/value_places.h"
#include "kernels/launch/recent.h"

namespace graft::compiler {

struct SizedRun {
  std::vector<TensorView> views;         // by value; their addresses are the last run's
  std::vector<uint64_t> offsets;         // by value: bytes from its base's first
  std::vector<graft_address> constants;  // of those whose sizes are symbols
  Placement placement;
  uint64_t given_bytes = 0;              // of inputs that may go before a run ends
  ReplaySegment whole;                   // all steps
  std::vector<ReplaySegment> stretches;  // of runs that give memory back as they go along
  bool measured = false;                 // whether these are as long as may be
};

// The view of a type, whose sizes and strides at() tells, without an address.
template <class At>
TensorView view_of(const TensorType& type, const At& at) {
  TensorView view;
  view.dtype = type.dtype;
  view.rank = static_cast<int>(type.sizes.size());
  std::ranges::transform(type.sizes, view.sizes, at);
  std::ranges::transform(type.strides, view.strides, at);
  return view;
}

// Views, offsets and the placement, for what the symbols are now.
SizedRun sized_run(const Graph& graph, const ValuePlaces& places, const MemoryPlan& plan,
                   const StepMemory& memory, const SymbolValues& symbols);

// Those of the sizes that came last, by the values of the graph's symbols.
inline constexpr size_t kKeptSizes = 16;
using SizedRuns = Recent<std::vector<int64_t>, SizedRun>;

}  // namespace graft::compiler
