// src/compiler/run/value_places.cpp: where the values of a graph lie in a run.
#include "compiler/run/value_places.h"

#include <fmt/format.h>

#include "runtime/driver/error.h"

namespace graft::compiler {

ValuePlaces::ValuePlaces(const Graph& graph, const Effects& effects, const MemoryPlan& plan)
    : places_(graph.values.size()),
      views_(view_places(graph, effects)),
      inside_(graph.values.size()) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) places_[graph.inputs[i]] = {Home::kInput, i};
  for (ValueId id : graph.constants) places_[id] = {Home::kConstant, 0};
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    for (ValueId id : plan.buffers[i].values) places_[id] = {Home::kArena, i};
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId value = graph.outputs[i].value;
    if (value == kNone) continue;
    Place& place = places_[effects.root[value]];
    if (place.home == Home::kNowhere) place = {Home::kOutput, i};
  }
  for (ValueId id = 0; id < places_.size(); ++id) {
    if (places_[id].home == Home::kNowhere) inside_[views_.bases[id]].push_back(id);
  }
}

void ValuePlaces::show(ValueId value, std::span<TensorView> views) const {
  const graft_address base = places_[value].address;
  views[value].address = base;
  for (ValueId id : inside_[value]) {
    views[id].address = base == 0 ? 0 : base + places_[id].offset;
  }
}

void ValuePlaces::check_input(const Graph& graph, size_t index, const TensorView& wanted,
                              const ExecutionInput& given) {
  const GraphValue& value = graph.values[graph.inputs[index]];
  const bool scalar = value.kind == InputKind::kScalar, empty = wanted.count() == 0;
  const graft_dtype dtype = scalar ? given.scalar.dtype : given.view.dtype;
  bool fits = dtype == wanted.dtype && (scalar || given.view.rank == wanted.rank);
  for (int k = 0; fits && !scalar && k < wanted.rank; ++k) {
    fits = given.view.sizes[k] == wanted.sizes[k] &&
           (empty || wanted.sizes[k] <= 1 || given.view.strides[k] == wanted.strides[k]);
  }
  if (fits) return;
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("graph {}: input %{} has another dtype, size or stride than the graph "
                          "was compiled for: compile the graph again",
                          graph.name, value.name));
}

}  // namespace graft::compiler
