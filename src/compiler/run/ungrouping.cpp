// src/compiler/run/ungrouping.cpp: groups that nothing computes as one.
#include "compiler/run/ungrouping.h"

#include "compiler/grouping/library_call.h"
#include "compiler/kernels/group_kernel.h"
#include "compiler/run/kernel_launch.h"

namespace graft::compiler {

void take_apart(const Effects& effects, Graph* graph) {
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

void take_apart_on(Stream& stream, const Effects& effects, Graph* graph, ExecutionHost& host) {
  std::vector<GroupKernel> kernels;
  std::vector<Group> groups;
  std::vector<size_t> generated;  // by kernel: its group
  for (size_t i = 0; i < graph->groups.size(); ++i) {
    if (library_call(*graph, graph->groups[i].nodes)) continue;
    kernels.push_back(*group_kernel(*graph, effects, graph->groups[i].nodes));
    generated.push_back(i);
  }
  compile_together(*graph, kernels, stream.device());
  std::vector<bool> lacking(graph->groups.size(), false);
  for (size_t i = 0; i < kernels.size(); ++i) {
    lacking[generated[i]] = !runs_on(stream, *graph, kernels[i], host);
  }
  for (size_t i = 0; i < graph->groups.size(); ++i) {
    if (!lacking[i]) groups.push_back(graph->groups[i]);
  }
  graph->groups = std::move(groups);
}

Graph without(Graph graph, const LackingGroup& lacking) {
  std::erase_if(graph.groups, [&](const Group& group) { return group.nodes == lacking.nodes; });
  return graph;
}

}  // namespace graft::compiler
