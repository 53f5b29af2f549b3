// src/compiler/analysis/liveness.cpp: when the memory of values is needed.
#include "compiler/analysis/liveness.h"

#include <algorithm>

namespace graft::compiler {

namespace {

// Whether one kernel computes the unit and keeps what nobody else uses in registers.
bool keeps_inside(const ScheduleUnits& units, UnitId unit) { return units.nodes(unit).size() > 1; }

}  // namespace

std::vector<LiveRange> live_ranges(const Graph& graph, const Effects& effects,
                                   const ScheduleUnits& units, const std::vector<UnitId>& order) {
  std::vector<uint32_t> step(units.count(), 0);
  for (uint32_t i = 0; i < order.size(); ++i) step[order[i]] = i;
  std::vector<uint32_t> last(graph.values.size(), 0);
  std::vector<bool> outside(graph.values.size(), false), output(graph.values.size(), false);
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const ValueId root = effects.root[id];
    if (graph.values[id].node == kNone) continue;
    const UnitId home = units.of(graph.values[id].node);
    for (NodeId user : effects.users[id]) {
      last[root] = std::max(last[root], step[units.of(user)]);
      outside[root] =
          outside[root] || units.of(user) != home || home != units.of(graph.values[root].node);
    }
    if (effects.escapes(id)) outside[root] = output[root] = true;
  }
  std::vector<LiveRange> ranges;
  for (UnitId unit : order) {
    for (NodeId id : units.nodes(unit)) {
      for (ValueId result : graph.nodes[id].results) {
        if (result == kNone || effects.root[result] != result) continue;
        if (!outside[result] && keeps_inside(units, unit)) continue;
        ranges.push_back({result, graph.values[result].type.extent(), step[unit],
                          std::max(step[unit], last[result]), output[result]});
      }
    }
  }
  return ranges;
}

int64_t peak_bytes(const Graph& graph, const std::vector<LiveRange>& ranges) {
  uint32_t steps = 0;
  for (const LiveRange& range : ranges) steps = std::max(steps, range.last + 1);
  std::vector<int64_t> change(steps + 1, 0);
  for (const LiveRange& range : ranges) {
    const int64_t bytes = graph.hint(range.bytes);
    change[range.first] += bytes;
    if (!range.output) change[range.last + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t step : change) peak = std::max(peak, live += step);
  return peak;
}

}  // namespace graft::compiler
