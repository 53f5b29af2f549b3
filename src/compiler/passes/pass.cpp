// src/compiler/passes/pass.cpp: a step of the compiler from graph to graph, and running many.
#include "compiler/passes/pass.h"

#include <fmt/format.h>

#include "compiler/analysis/verifier.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/error.h"

namespace graft::compiler {

namespace {

constexpr Pass kInference[] = {
    {"fold_batch_norms", fold_batch_norms},
    {"fold_constants", fold_constants},
    {"simplify_algebra", simplify_algebra},
    {"match_attention", match_attention},
    {"join_products", join_products},
    {"sink_views", sink_views},
    {"remove_copies", remove_copies},
    {"hoist_casts", hoist_casts},
    {"number_values", number_values},
    {"remove_dead_code", remove_dead_code},
    {"group_heads", group_heads},
    {"expand_composites", expand_composites},
    {"number_values", number_values},
    {"remove_dead_code", remove_dead_code},
    {"reinplace_writes", reinplace_writes},
    {"fuse_epilogues", fuse_epilogues},
    {"fuse", fuse},
    {"schedule", schedule},
};

constexpr Pass kLayout[] = {{"choose_layouts", choose_layouts}};

constexpr Pass kCleaning[] = {
    {"fold_constants", fold_constants},     {"simplify_algebra", simplify_algebra},
    {"remove_copies", remove_copies},       {"number_values", number_values},
    {"remove_dead_code", remove_dead_code},
};

// The last ones, which write groups and the order.
constexpr auto kGrouping = std::span(kInference).last<3>();

std::vector<Pass> without_other_roundings() {
  std::vector<Pass> passes;
  for (const Pass& pass : kInference) {
    const bool rounds =
        pass.run == fold_batch_norms || pass.run == match_attention || pass.run == join_products;
    if (!rounds) passes.push_back(pass);
  }
  return passes;
}

}  // namespace

std::span<const Pass> inference_passes() { return kInference; }
std::span<const Pass> training_passes() {
  static const auto* passes = new std::vector<Pass>(without_other_roundings());
  return *passes;
}
std::span<const Pass> layout_passes() { return kLayout; }
std::span<const Pass> cleaning_passes() { return kCleaning; }
std::span<const Pass> grouping_passes() { return kGrouping; }

int run_passes(Graph& graph, std::span<const Pass> passes, const StageHook& hook) {
  verify(graph);
  if (hook) hook("input", graph, 0);
  int changes = 0;
  for (const Pass& pass : passes) {
    const int made = pass.run(graph);
    try {
      verify(graph);
    } catch (const Error& error) {
      throw Error(GRAFT_INTERNAL, fmt::format("the compiler's pass {} broke the graph: {}",
                                              pass.name, error.what()));
    }
    if (hook) hook(pass.name, graph, made);
    changes += made;
  }
  return changes;
}

}  // namespace graft::compiler
