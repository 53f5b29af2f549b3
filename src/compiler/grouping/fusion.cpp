// src/compiler/grouping/fusion.cpp: the pass that groups elementwise nodes and reductions.
#include "compiler/grouping/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/analysis/group_shape.h"
#include "compiler/analysis/op_row_binding.h"
#include "compiler/analysis/reduction.h"
#include "compiler/analysis/schedule_units.h"
#include "compiler/grouping/grouping.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

// One value for each row of the loops: sizes are the domain's, the last ones 1.
bool is_row(const std::vector<Size>& sizes, const Loops& loops) {
  if (sizes.size() != loops.domain.size()) return false;
  const size_t kept = sizes.size() - loops.reduced;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < kept ? !(sizes[i] == loops.domain[i]) : !sizes[i].is(1)) return false;
  }
  return true;
}

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph), effects_(graph), units_(graph, effects_) {
    loops_.resize(units_.count());
    for (UnitId unit = 0; unit < units_.count(); ++unit) {
      if (unit < graph.groups.size()) continue;  // fused before
      loops_[unit] = group_loops_of(graph, graph.nodes[units_.nodes(unit)[0]]);
    }
  }

  int run() {
    int changes = 0;
    // A later round sees neighbours that have grown; each merge leaves one unit less.
    for (int made = 1; made > 0; changes += made) {
      made = 0;
      for (NodeId id : graph_.order) made += merge_operands(id);
    }
    write_groups();
    return changes;
  }

 private:
  int merge_operands(NodeId id) {
    int made = 0;
    if (!loops_[units_.of(id)]) return 0;
    each_value(graph_.nodes[id].arguments, [&](ValueId value) {
      const NodeId maker = graph_.values[value].node;
      if (maker == kNone) return;
      const UnitId from = units_.of(maker), to = units_.of(id);
      if (from == to || !loops_[from]) return;
      const auto loops = joined(*loops_[from], *loops_[to]);
      if (!loops || !fits(from, to) || units_.path_around(from, to)) return;
      units_.merge(to, from);
      loops_[to] = loops;
      ++made;
    });
    return made;
  }

  bool fits(UnitId a, UnitId b) const {
    std::vector<NodeId> nodes = units_.nodes(a);
    nodes.insert(nodes.end(), units_.nodes(b).begin(), units_.nodes(b).end());
    if (nodes.size() > kMaxGroupNodes) return false;
    const GroupEdges edges = edges_of(graph_, effects_, nodes);
    size_t tensors = edges.inputs.size() + edges.outputs.size();
    for (NodeId id : nodes) {
      const auto reversed = reversal(graph_, graph_.nodes[id]);
      if (!reversed) continue;
      if (std::ranges::find(edges.inputs, reversed->input) == edges.inputs.end()) return false;
      ++tensors;
    }
    return tensors <= kMaxGroupTensors;
  }

  void write_groups() {
    size_t number = 0;
    auto name = [&] {
      std::string text;
      do {
        text = fmt::format("g{}", number++);
      } while (std::any_of(graph_.groups.begin(), graph_.groups.end(),
                           [&](const Group& group) { return group.name == text; }));
      return text;
    };
    for (UnitId unit = static_cast<UnitId>(graph_.groups.size()); unit < units_.count(); ++unit) {
      if (!loops_[unit] || units_.nodes(unit).empty()) continue;
      const GroupKind kind =
          loops_[unit]->reduced > 0 ? GroupKind::kReduction : GroupKind::kPointwise;
      graph_.groups.push_back({name(), kind, units_.nodes(unit)});
    }
  }

  Graph& graph_;
  const Effects effects_;
  ScheduleUnits units_;
  std::vector<std::optional<Loops>> loops_;  // by unit
};

}  // namespace

std::optional<Reversal> reversal(const Graph& graph, const Node& node) {
  if (!node.is(OperatorId::kFlip) || node.results.size() != 1 || node.results[0] == kNone) {
    return std::nullopt;
  }
  Reversal found;
  found.input = operand(node, 0);
  const Argument* dims = argument(node, "dims");
  const bool known = found.input != kNone && dims != nullptr && dims->kind == Argument::Kind::kList;
  if (!known || is_complex(graph.values[found.input].type.dtype)) return std::nullopt;
  const auto rank = static_cast<int64_t>(graph.values[found.input].type.sizes.size());
  found.dims.resize(static_cast<size_t>(rank), false);
  for (const Argument& dim : dims->list) {
    if (dim.kind != Argument::Kind::kInteger || !dim.integer.is_constant()) return std::nullopt;
    const int64_t given = dim.integer.constant_part();
    if (given < -rank || given >= rank) return std::nullopt;
    found.dims[static_cast<size_t>(given < 0 ? given + rank : given)] = true;
  }
  return found;
}

std::optional<Loops> loops_of(const Graph& graph, const Node& node) {
  OpRowBinding use;
  if (row_use(graph, node, &use)) {
    // A copy that asks for a layout has it in its type; every other result is as row_use says.
    return Loops{graph.values[node.results[0]].type.sizes, 0};
  }
  LastReduction reduction;
  if (!last_reduction(graph, node, &reduction)) return std::nullopt;
  return Loops{graph.values[reduction.input].type.sizes, reduction.dims};
}

std::optional<Loops> group_loops_of(const Graph& graph, const Node& node) {
  if (reversal(graph, node)) return Loops{graph.values[node.results[0]].type.sizes, 0};
  return loops_of(graph, node);
}

std::optional<Loops> joined(const Loops& a, const Loops& b) {
  if (a.domain == b.domain && (a.reduced == b.reduced || a.reduced == 0 || b.reduced == 0)) {
    return Loops{a.domain, std::max(a.reduced, b.reduced)};
  }
  if (a.reduced == 0 && b.reduced > 0 && is_row(a.domain, b)) return b;
  if (b.reduced == 0 && a.reduced > 0 && is_row(b.domain, a)) return a;
  return std::nullopt;
}

GroupEdges edges_of(const Graph& graph, const Effects& effects, const std::vector<NodeId>& nodes) {
  const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
  std::unordered_set<ValueId> seen;
  auto used_outside = [&](ValueId value) {
    const std::vector<NodeId>& users = effects.users[value];
    return effects.escapes(value) || std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return !inside.contains(user);
           });
  };
  GroupEdges edges;
  for (NodeId id : nodes) {
    each_value(graph.nodes[id].arguments, [&](ValueId value) {
      const NodeId maker = graph.values[value].node;
      if (maker != kNone && inside.contains(maker)) return;
      if (seen.insert(value).second) edges.inputs.push_back(value);
    });
    for (ValueId result : graph.nodes[id].results) {
      if (result != kNone && used_outside(result)) edges.outputs.push_back(result);
    }
  }
  return edges;
}

int fuse(Graph& graph) { return Fusion(graph).run(); }

}  // namespace graft::compiler
