// src/compiler/analysis/schedule_units.h: what runs as one: groups and single nodes, and their
// order.
#pragma once

#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

using UnitId = uint32_t;

// The graph with every group drawn together to one unit. Units merge; ids of what merged
// are dead. REQUIRES: graph and effects outlive it and do not change.
class ScheduleUnits {
 public:
  // Units of the graph's groups, and one for every other node of the order.
  ScheduleUnits(const Graph& graph, const Effects& effects);

  UnitId of(NodeId node) const { return unit_[node]; }
  // In program order; empty once merged into another.
  const std::vector<NodeId>& nodes(UnitId unit) const { return nodes_[unit]; }
  size_t count() const { return nodes_.size(); }

  // The units that must run right before, or after; once each, without itself.
  std::vector<UnitId> before(UnitId unit) const;
  std::vector<UnitId> after(UnitId unit) const;

  // Whether a path from one to the other passes through a third: merging them would make a cycle.
  bool path_around(UnitId from, UnitId to) const;

  // Moves the second's nodes into the first.
  void merge(UnitId into, UnitId from);

  // Every unit after those it needs, otherwise by the place of its last node; empty where units
  // need one another.
  std::vector<UnitId> sorted() const;

 private:
  std::vector<UnitId> neighbours(UnitId unit, const std::vector<std::vector<NodeId>>& edges) const;
  uint32_t last(UnitId unit) const { return effects_.place[nodes_[unit].back()]; }

  const Effects& effects_;
  std::vector<UnitId> unit_;                // by node
  std::vector<std::vector<NodeId>> nodes_;  // by unit
};

}  // namespace graft::compiler
