// src/compiler/run/sized_run.cpp: what an executor keeps of runs with certain sizes.
#include "compiler/run/sized_run.h"

#include <algorithm>

#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

SizedRun sized_run(const Graph& graph, const ValuePlaces& places, const MemoryPlan& plan,
                   const StepMemory& memory, const SymbolValues& symbols) {
  SizedRun run;
  run.views.resize(graph.values.size());
  run.offsets.resize(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const TensorType& type = graph.values[id].type;
    run.views[id] = view_of(type, [&](const Size& size) { return symbols.at(size); });
    if (const auto& offset = places.offset(id)) {
      run.offsets[id] = static_cast<uint64_t>(symbols.at(*offset)) * graft::size_of(type.dtype);
    }
  }
  run.placement = placed(plan, kAlignment, [&](const Size& size) { return symbols.at(size); });
  for (const Size& bytes : memory.activations) {
    run.given_bytes += static_cast<uint64_t>(std::max<int64_t>(symbols.at(bytes), 0));
  }
  return run;
}

}  // namespace graft::compiler
