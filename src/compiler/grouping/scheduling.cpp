// src/compiler/grouping/scheduling.cpp: the pass that orders units so that few bytes live at once.
#include <algorithm>
#include <set>

#include "compiler/analysis/liveness.h"
#include "compiler/analysis/schedule_units.h"
#include "compiler/grouping/grouping.h"

namespace graft::compiler {

namespace {

// Always takes the unit, of those that may run, after which the fewest bytes are live.
class Scheduler {
 public:
  Scheduler(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
            const std::vector<LiveRange>& ranges)
      : units_(units),
        makes_(units.count(), 0),
        needs_(units.count()),
        waits_(units.count(), 0),
        done_(units.count(), false) {
    std::vector<std::set<UnitId>> readers(graph.values.size());  // by root
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      for (NodeId user : effects.users[id]) readers[effects.root[id]].insert(units.of(user));
    }
    for (const LiveRange& range : ranges) {
      const int64_t bytes = graph.hint(range.bytes);
      const UnitId home = units.of(graph.values[range.value].node);
      makes_[home] += bytes;
      if (range.output) continue;
      std::set<UnitId>& users = readers[range.value];
      users.erase(home);
      if (users.empty()) makes_[home] -= bytes;
      if (users.size() == 1) makes_[*users.begin()] -= bytes;
      for (UnitId user : users) needs_[user].push_back(buffers_.size());
      buffers_.push_back({bytes, {users.begin(), users.end()}, users.size()});
    }
  }

  std::vector<UnitId> run(const std::vector<UnitId>& given) {
    for (UnitId unit : given) {
      waits_[unit] = units_.before(unit).size();
      if (waits_[unit] == 0) ready_.insert({makes_[unit], unit});
    }
    std::vector<UnitId> order;
    while (!ready_.empty()) {
      const UnitId unit = ready_.begin()->second;
      ready_.erase(ready_.begin());
      order.push_back(unit);
      done_[unit] = true;
      for (size_t buffer : needs_[unit]) use(&buffers_[buffer]);
      for (UnitId next : units_.after(unit)) {
        if (--waits_[next] == 0) ready_.insert({makes_[next], next});
      }
    }
    return order;
  }

 private:
  struct Buffer {
    int64_t bytes;
    std::vector<UnitId> users;
    size_t left;  // that have not run
  };

  // The only user that is left will free the buffer.
  void use(Buffer* buffer) {
    if (--buffer->left != 1) return;
    const auto user = std::find_if(buffer->users.begin(), buffer->users.end(),
                                   [&](UnitId unit) { return !done_[unit]; });
    const bool waiting = ready_.erase({makes_[*user], *user}) > 0;
    makes_[*user] -= buffer->bytes;
    if (waiting) ready_.insert({makes_[*user], *user});
  }

  const ScheduleUnits& units_;
  std::vector<int64_t> makes_;  // by unit: bytes that are live after it and were not before
  std::vector<std::vector<size_t>> needs_;  // by unit: positions in buffers_
  std::vector<Buffer> buffers_;
  std::vector<size_t> waits_;
  std::vector<bool> done_;
  std::set<std::pair<int64_t, UnitId>> ready_;  // by growth
};

}  // namespace

int schedule(Graph& graph) {
  const Effects effects(graph);
  const ScheduleUnits units(graph, effects);
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
