// src/compiler/analysis/drawing.h: a graph as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// What was measured of the unit of a node.
struct UnitFigures {
  NodeId node = kNone;  // any of the unit's
  double microseconds = 0;
  uint64_t bytes = 0;  // read and written
};

// An SVG: a box for each input, unit (node or group, with its nodes' operators) and output, top
// down, and an edge for each value between them. Units with figures show them and are
// darker the larger their share of the time is. The same graph gives the same text.
GRAFT_EXPORT std::string draw(const Graph& graph, const std::vector<UnitFigures>& figures = {});

}  // namespace graft::compiler
