// src/compiler/grouping/epilogue_fusion.cpp: the pass that joins products with what follows them.
#include <fmt/format.h>

#include "compiler/analysis/schedule_units.h"
#include "compiler/grouping/fusion.h"
#include "compiler/grouping/grouping.h"
#include "compiler/grouping/library_call.h"

namespace graft::compiler {

namespace {

class EpilogueFusion {
 public:
  explicit EpilogueFusion(Graph& graph) : graph_(graph), effects_(graph), units_(graph, effects_) {}

  int run() {
    int changes = 0;
    const size_t before = graph_.groups.size();
    std::vector<Group> groups;
    for (NodeId id : graph_.order) {
      const OpClass cls = graph_.nodes[id].op->cls;
      if (cls != OpClass::kMatmul && cls != OpClass::kConvolution) continue;
      if (units_.of(id) < before || graph_.nodes[id].results.size() != 1) continue;
      if (graph_.nodes[id].results[0] == kNone || graph_.nodes[id].has_effect()) continue;
      Group group;
      group.kind = cls == OpClass::kMatmul ? GroupKind::kMatmul : GroupKind::kConvolution;
      group.nodes = chain(id);
      if (group.nodes.size() == 1) continue;
      group.name = fmt::format("e{}", groups.size());
      changes += static_cast<int>(group.nodes.size()) - 1;
      groups.push_back(group);
    }
    graph_.groups.insert(graph_.groups.end(), groups.begin(), groups.end());
    return changes;
  }

 private:
  // Every node behind the product is one that a kernel could compute, too.
  bool joins(std::vector<NodeId> nodes, NodeId next) const {
    if (!loops_of(graph_, graph_.nodes[next])) return false;
    nodes.push_back(next);
    return library_call(graph_, nodes).has_value();
  }

  std::vector<NodeId> chain(NodeId id) {
    std::vector<NodeId> nodes{id};
    const UnitId unit = units_.of(id);
    ValueId value = graph_.nodes[id].results[0];
    while (true) {
      if (effects_.users[value].size() != 1 || effects_.escapes(value)) break;
      const NodeId next = effects_.users[value][0];
      const UnitId other = units_.of(next);
      if (units_.nodes(other).size() != 1 || !joins(nodes, next)) break;
      if (units_.path_around(unit, other)) break;
      units_.merge(unit, other);
      nodes.push_back(next);
      value = graph_.nodes[next].results[0];
    }
    return nodes;
  }

  Graph& graph_;
  const Effects effects_;
  ScheduleUnits units_;
};

}  // namespace

int fuse_epilogues(Graph& graph) { return EpilogueFusion(graph).run(); }

}  // namespace graft::compiler
