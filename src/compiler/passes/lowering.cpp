// src/compiler/passes/lowering.cpp: from a traced graph to what executors take.
#include "compiler/passes/lowering.h"

#include <utility>

#include "compiler/passes/pass.h"
#include "compiler/passes/prologue.h"
#include "kernels/convolution/convolution.h"

namespace graft::compiler {

Lowered lower(Graph graph, Mode mode, bool channels_last) {
  const bool inference = mode == Mode::kInference;
  const auto all = inference ? inference_passes() : training_passes();
  const auto grouping = grouping_passes();
  if (inference && channels_last) run_passes(graph, layout_passes());
  run_passes(graph, all.first(all.size() - grouping.size()));
  if (!inference && channels_last && graph.symbols.empty()) {
    run_passes(graph, layout_passes());
    run_passes(graph, all.first(all.size() - grouping.size()));
  }
  Lowered lowered;
  auto parts = inference ? split_prologue(graph) : std::nullopt;
  const bool weights = parts.has_value() && !parts->inputs.empty();  // or constants alone
  if (weights) {
    run_passes(parts->prologue, grouping);
    lowered.prologue = std::move(parts->prologue);
    lowered.taken = std::move(parts->inputs);
    graph = std::move(parts->main);
  }
  run_passes(graph, grouping);
  lowered.main = std::move(graph);
  return lowered;
}

DeviceGraphs lower_for(OpenDevice& device, Graph graph, Mode mode, bool may_lay_out) {
  const bool channels_last = may_lay_out && prefers_channels_last(device, GRAFT_FLOAT32);
  VendorGraphs vendor = take_vendor_graphs(&graph, device);
  return {std::move(vendor), lower(std::move(graph), mode, channels_last)};
}

}  // namespace graft::compiler
