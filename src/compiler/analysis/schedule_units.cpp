// src/compiler/analysis/schedule_units.cpp: what runs as one: groups and single nodes, and their
// order.
#include "compiler/analysis/schedule_units.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace graft::compiler {

ScheduleUnits::ScheduleUnits(const Graph& graph, const Effects& effects)
    : effects_(effects), unit_(graph.nodes.size(), kNone) {
  for (const Group& group : graph.groups) {
    for (NodeId id : group.nodes) unit_[id] = static_cast<UnitId>(nodes_.size());
    nodes_.push_back(group.nodes);
  }
  for (NodeId id : graph.order) {
    if (unit_[id] != kNone) continue;
    unit_[id] = static_cast<UnitId>(nodes_.size());
    nodes_.push_back({id});
  }
}

std::vector<UnitId> ScheduleUnits::neighbours(UnitId unit,
                                              const std::vector<std::vector<NodeId>>& edges) const {
  std::vector<UnitId> found;
  for (NodeId id : nodes_[unit]) {
    for (NodeId next : edges[id]) {
      if (unit_[next] != unit) found.push_back(unit_[next]);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<UnitId> ScheduleUnits::before(UnitId unit) const {
  return neighbours(unit, effects_.before);
}
std::vector<UnitId> ScheduleUnits::after(UnitId unit) const {
  return neighbours(unit, effects_.after);
}

bool ScheduleUnits::path_around(UnitId from, UnitId to) const {
  // Backwards from the end. A unit that ends before the other begins does not need it.
  const uint32_t first = effects_.place[nodes_[from].front()];
  std::unordered_set<UnitId> seen;
  std::vector<UnitId> open;
  auto visit = [&](UnitId unit) {
    if (last(unit) > first && seen.insert(unit).second) open.push_back(unit);
  };
  for (UnitId unit : before(to)) {
    if (unit != from) visit(unit);
  }
  while (!open.empty()) {
    const UnitId unit = open.back();
    open.pop_back();
    for (UnitId earlier : before(unit)) {
      if (earlier == from) return true;
      visit(earlier);
    }
  }
  return false;
}

void ScheduleUnits::merge(UnitId into, UnitId from) {
  std::vector<NodeId>& nodes = nodes_[into];
  for (NodeId id : nodes_[from]) unit_[id] = into;
  nodes.insert(nodes.end(), nodes_[from].begin(), nodes_[from].end());
  std::sort(nodes.begin(), nodes.end(),
            [&](NodeId a, NodeId b) { return effects_.place[a] < effects_.place[b]; });
  nodes_[from].clear();
}

std::vector<UnitId> ScheduleUnits::sorted() const {
  std::vector<size_t> waits(nodes_.size(), 0);
  using Entry = std::pair<uint32_t, UnitId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  size_t live = 0;
  for (UnitId unit = 0; unit < nodes_.size(); ++unit) {
    if (nodes_[unit].empty()) continue;
    ++live;
    waits[unit] = before(unit).size();
    if (waits[unit] == 0) ready.emplace(last(unit), unit);
  }
  std::vector<UnitId> order;
  while (!ready.empty()) {
    const UnitId unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (UnitId next : after(unit)) {
      if (--waits[next] == 0) ready.emplace(last(next), next);
    }
  }
  if (order.size() != live) order.clear();
  return order;
}

}  // namespace graft::compiler
