// src/compiler/run/sized_run.h: what an executor keeps of runs with certain sizes.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "compiler/plan/memory_plan.h"
#include "compiler/plan/step_memory.h"
#include "compiler/run/replay_segment.h"
#include "compiler/run/symbol_values.h"
#include "compiler/run/value_places.h"

namespace graft::compiler {

struct SizedRun {
  std::vector<int64_t> symbols;          // the values of the graph's
  std::vector<TensorView> views;         // by value; their addresses are the last run's
  std::vector<uint64_t> offsets;         // by value: bytes from its base's first
  std::vector<graft_address> constants;  // of those whose sizes are symbols
  Placement placement;
  uint64_t given_bytes = 0;              // of inputs that may go before a run ends
  ReplaySegment whole;                   // all steps
  std::vector<ReplaySegment> stretches;  // of runs that give memory back as they go along
  bool measured = false;                 // whether these are as long as may be
};

// Views, offsets and the placement, for what the symbols are now.
SizedRun sized_run(const Graph& graph, const ValuePlaces& places, const MemoryPlan& plan,
                   const StepMemory& memory, const SymbolValues& symbols);

// Those of the sizes that came last. Not thread-safe.
class SizedRuns {
 public:
  static constexpr size_t kKept = 16;

  // The run of these values, from now on the newest; null where there is none.
  SizedRun* find(std::span<const int64_t> symbols);

  // Keeps it as the newest; out_dropped: the oldest, where there were kKept. Runs stay where they
  // are in memory.
  SizedRun& add(SizedRun run, std::list<SizedRun>* out_dropped);

  auto begin() const { return runs_.begin(); }
  auto end() const { return runs_.end(); }

 private:
  std::list<SizedRun> runs_;  // newest first
};

}  // namespace graft::compiler
