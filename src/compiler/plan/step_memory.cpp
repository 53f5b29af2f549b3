// src/compiler/plan/step_memory.cpp: what memory each step of a run begins, or ceases, to need.
#include "compiler/plan/step_memory.h"

#include <algorithm>

namespace graft::compiler {

StepMemory step_memory(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
                       const std::vector<UnitId>& order, const MemoryPlan& plan) {
  StepMemory memory;
  if (order.empty()) return memory;
  memory.steps.resize(order.size());
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    memory.steps[plan.buffers[i].first].buffers.push_back(i);
    memory.steps[plan.buffers[i].last].past_buffers.push_back(i);
  }
  for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
    memory.steps[plan.outputs[i].first].outputs.push_back(i);
  }
  std::vector<uint32_t> place(units.count(), 0), last(graph.values.size(), 0);
  std::vector<bool> stays(graph.values.size(), false);
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    uint32_t& to = last[effects.root[id]];
    for (NodeId user : effects.users[id]) to = std::max(to, place[units.of(user)]);
    if (effects.escapes(id)) stays[effects.root[id]] = true;
  }
  for (uint32_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphValue& value = graph.values[graph.inputs[i]];
    const ValueId root = effects.root[graph.inputs[i]];
    if (value.kind == InputKind::kScalar || stays[root] || value.mutated) continue;
    memory.steps[last[root]].past_inputs.push_back(i);
    const bool early = last[root] + 1 < order.size() && root == graph.inputs[i];
    if (early && value.kind == InputKind::kActivation) {
      memory.activations.push_back(value.type.extent());
    }
  }
  return memory;
}

}  // namespace graft::compiler
