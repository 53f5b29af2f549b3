// src/compiler/ungrouping.cpp: groups that nothing computes as one.
#include "compiler/ungrouping.h"

#include "compiler/effects.h"
#include "compiler/group_kernel.h"
#include "compiler/library_call.h"

namespace graft::compiler {

void take_apart(Graph* graph) {
  const Effects effects(*graph);
  std::vector<Group> groups;
  for (Group& group : graph->groups) {
    const bool multiplies =
        group.kind == GroupKind::kMatmul || group.kind == GroupKind::kConvolution;
    std::vector<NodeId> rest = group.nodes;
    if (multiplies) rest.erase(rest.begin());
    if (!rest.empty() && !group_kernel(*graph, effects, rest)) continue;
    if (multiplies && !library_call(*graph, group.nodes)) {
      group.nodes = rest;
      group.kind = GroupKind::kPointwise;
    }
    if (!group.nodes.empty()) groups.push_back(group);
  }
  graph->groups = std::move(groups);
}

}  // namespace graft::compiler
