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
  run.symbols.assign(symbols.values().begin(), symbols.values().end());
  run.views.resize(graph.values.size());
  run.offsets.resize(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const TensorType& type = graph.values[id].type;
    TensorView& view = run.views[id];
    view.dtype = type.dtype;
    view.rank = static_cast<int>(type.sizes.size());
    for (int i = 0; i < view.rank; ++i) {
      view.sizes[i] = symbols.at(type.sizes[static_cast<size_t>(i)]);
      view.strides[i] = symbols.at(type.strides[static_cast<size_t>(i)]);
    }
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

SizedRun* SizedRuns::find(std::span<const int64_t> symbols) {
  const auto found = std::ranges::find_if(
      runs_, [&](const SizedRun& run) { return std::ranges::equal(run.symbols, symbols); });
  if (found == runs_.end()) return nullptr;
  runs_.splice(runs_.begin(), runs_, found);
  return &*found;
}

SizedRun& SizedRuns::add(SizedRun run, std::list<SizedRun>* out_dropped) {
  runs_.push_front(std::move(run));
  if (runs_.size() > kKept) out_dropped->splice(out_dropped->begin(), runs_, --runs_.end());
  return runs_.front();
}

}  // namespace graft::compiler
