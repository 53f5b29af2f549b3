// src/compiler/analysis/liveness.h: when the memory of values is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/schedule_units.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

// Memory that a step of the program brings into being: a root value of a node that something
// outside the node's own unit uses. Values inside a generated kernel have none.
struct LiveRange {
  ValueId value = kNone;
  Size bytes;
  uint32_t first = 0, last = 0;  // positions in the order of units, both included
  bool output = false;           // handed to the caller: lives on
};

// The ranges of an order of units, by first step.
std::vector<LiveRange> live_ranges(const Graph& graph, const Effects& effects,
                                   const ScheduleUnits& units, const std::vector<UnitId>& order);

// The most bytes that live at one step, at the symbols' hints.
int64_t peak_bytes(const Graph& graph, const std::vector<LiveRange>& ranges);

}  // namespace graft::compiler
