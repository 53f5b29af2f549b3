// src/compiler/passes/passes.h: the passes, one source file each.
#pragma once

#include "compiler/graph/graph.h"
#include "compiler/grouping/grouping.h"

namespace graft::compiler {

// Each returns how many changes it made, keeps names and source lines of what stays, and leaves a
// graph that verify() accepts if it was given one. None but reinplace_writes merges, moves or
// removes effects. What each does: docs/develop/compiler-ir.md.
int fold_constants(Graph& graph);
int remove_copies(Graph& graph);
int simplify_algebra(Graph& graph);
int number_values(Graph& graph);
int remove_dead_code(Graph& graph);
int hoist_casts(Graph& graph);
int sink_views(Graph& graph);
int reinplace_writes(Graph& graph);

// Round differently: inference only; where halves are stored.
int fold_batch_norms(Graph& graph);
int match_attention(Graph& graph);  // inference only, too
int join_products(Graph& graph);    // and this
int group_heads(Graph& graph);
int expand_composites(Graph& graph);

// Only where the device's library prefers channels-last: see layout_passes().
int choose_layouts(Graph& graph);

// What most of them are: a class that changes a graph, and removes what this left without users.
template <class Change>
int change_and_clean(Graph& graph) {
  const int changes = Change(graph).run();
  if (changes > 0) remove_dead_code(graph);
  return changes;
}

}  // namespace graft::compiler
