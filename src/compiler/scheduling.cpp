// src/compiler/scheduling.cpp: the pass that orders units so that few bytes live at once.
#include <algorithm>
#include <set>

#include "compiler/liveness.h"
#include "compiler/passes.h"
#include "compiler/units.h"

namespace graft::compiler {

namespace {

// Always takes the unit, of those that may run, after which the fewest bytes are live.
class Scheduler {
 public:
  Scheduler(const Graph& graph, const Effects& effects, const Units& units,
            const std::vector<LiveRange>& ranges)
      : units_(units), makes_(units.count(), 0), needs_(units.count()), waits_(units.count(), 0) {
    for (const LiveRange& range : ranges) {
      const int64_t bytes = graph.hint(range.bytes);
      const UnitId home = units.of(graph.values[range.value].node);
      makes_[home] += bytes;
      if (range.output) continue;
      std::set<UnitId> users;
      for (ValueId id = 0; id < graph.values.size(); ++id) {
        if (effects.root[id] != range.value) continue;
        for (NodeId user : effects.users[id]) users.insert(units.of(user));
      }
      users.erase(home);
      if (users.empty()) makes_[home] -= bytes;
      for (UnitId user : users) needs_[user].push_back(buffers_.size());
      buffers_.push_back({bytes, users.size()});
    }
  }

  std::vector<UnitId> run(const std::vector<UnitId>& given) {
    std::vector<UnitId> ready, order;
    for (UnitId unit : given) {
      waits_[unit] = units_.before(unit).size();
      if (waits_[unit] == 0) ready.push_back(unit);
    }
    while (!ready.empty()) {
      size_t best = 0;
      for (size_t i = 1; i < ready.size(); ++i) {
        const int64_t a = growth(ready[i]), b = growth(ready[best]);
        if (a < b || (a == b && ready[i] < ready[best])) best = i;
      }
      const UnitId unit = ready[best];
      ready.erase(ready.begin() + static_cast<int64_t>(best));
      order.push_back(unit);
      for (size_t buffer : needs_[unit]) --buffers_[buffer].users;
      for (UnitId next : units_.after(unit)) {
        if (--waits_[next] == 0) ready.push_back(next);
      }
    }
    return order;
  }

 private:
  struct Buffer {
    int64_t bytes;
    size_t users;  // that have not run
  };

  int64_t growth(UnitId unit) const {
    int64_t bytes = makes_[unit];
    for (size_t buffer : needs_[unit]) {
      if (buffers_[buffer].users == 1) bytes -= buffers_[buffer].bytes;
    }
    return bytes;
  }

  const Units& units_;
  std::vector<int64_t> makes_;
  std::vector<std::vector<size_t>> needs_;  // by unit: positions in buffers_
  std::vector<Buffer> buffers_;
  std::vector<size_t> waits_;
};

}  // namespace

int schedule(Graph& graph) {
  const Effects effects(graph);
  const Units units(graph, effects);
  std::vector<UnitId> order = units.sorted();
  const std::vector<LiveRange> ranges = live_ranges(graph, effects, units, order);
  const std::vector<UnitId> greedy = Scheduler(graph, effects, units, ranges).run(order);
  const int64_t given = peak_bytes(graph, ranges);
  if (peak_bytes(graph, live_ranges(graph, effects, units, greedy)) < given) order = greedy;
  std::vector<NodeId> nodes;
  for (UnitId unit : order) {
    nodes.insert(nodes.end(), units.nodes(unit).begin(), units.nodes(unit).end());
  }
  int moved = 0;
  for (size_t i = 0; i < nodes.size(); ++i) moved += nodes[i] != graph.order[i];
  graph.order = nodes;
  return moved;
}

}  // namespace graft::compiler
