// src/compiler/plan/step_memory.h: what memory each step of a run begins, or ceases, to need.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/memory_plan.h"

namespace graft::compiler {

struct StepMemory {
  struct Step {
    std::vector<uint32_t> outputs, buffers;  // of the plan, that it is the first to use
    std::vector<uint32_t> past_buffers;      // that nothing after it uses
    std::vector<uint32_t> past_inputs;       // of the graph, likewise
  };
  std::vector<Step> steps;        // by position in the order of units
  std::vector<Size> activations;  // bytes of those inputs that go before the last step
};

// Inputs that share memory with an output are never past. plan: plan_memory() of the same.
StepMemory step_memory(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
                       const std::vector<UnitId>& order, const MemoryPlan& plan);

}  // namespace graft::compiler
