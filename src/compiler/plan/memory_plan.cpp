// src/compiler/plan/memory_plan.cpp: where the values of a graph lie in one arena.
#include "compiler/plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "compiler/grouping/fusion.h"
#include "runtime/driver/error.h"

namespace graft::compiler {

namespace {

bool overlap_in_time(const PlannedBuffer& a, const PlannedBuffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

class Planner {
 public:
  Planner(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
          const std::vector<UnitId>& order)
      : graph_(graph), effects_(effects), units_(units), order_(order) {
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      if (effects.root[id] != id) views_[effects.root[id]].push_back(id);
    }
  }

  MemoryPlan run() {
    for (const LiveRange& range : live_ranges(graph_, effects_, units_, order_)) {
      if (range.output) {
        plan_.outputs.push_back({range.value, range.bytes, range.first});
        continue;
      }
      const int64_t taken = reused(range);
      if (taken < 0) {
        buffer_of_[range.value] = plan_.buffers.size();
        plan_.buffers.push_back({{range.value}, range.bytes, range.first, range.last});
        continue;
      }
      PlannedBuffer& buffer = plan_.buffers[static_cast<size_t>(taken)];
      buffer.values.push_back(range.value);
      buffer.last = range.last;
      buffer_of_[range.value] = static_cast<size_t>(taken);
    }
    return std::move(plan_);
  }

 private:
  // The buffer that the value may take over; -1 for none.
  int64_t reused(const LiveRange& range) const {
    const UnitId unit = units_.of(graph_.values[range.value].node);
    for (const NodeId id : units_.nodes(unit)) {
      const auto loops = loops_of(graph_, graph_.nodes[id]);
      if (!loops || loops->reduced > 0) return -1;
    }
    const TensorType& type = graph_.values[range.value].type;
    for (ValueId input : edges_of(graph_, effects_, units_.nodes(unit)).inputs) {
      const auto found = buffer_of_.find(input);
      if (found == buffer_of_.end() || graph_.values[input].type != type) continue;
      const PlannedBuffer& buffer = plan_.buffers[found->second];
      const bool dies = buffer.last == range.first && buffer.values.back() == input;
      if (dies && effects_.stable(input) && seen_once(input, unit)) {
        return static_cast<int64_t>(found->second);
      }
    }
    return -1;
  }

  // No view of the memory is read by the unit.
  bool seen_once(ValueId input, UnitId unit) const {
    const auto found = views_.find(input);
    if (found == views_.end()) return true;
    for (ValueId id : found->second) {
      for (NodeId user : effects_.users[id]) {
        if (units_.of(user) == unit) return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const Effects& effects_;
  const ScheduleUnits& units_;
  const std::vector<UnitId>& order_;
  MemoryPlan plan_;
  std::unordered_map<ValueId, size_t> buffer_of_;
  std::unordered_map<ValueId, std::vector<ValueId>> views_;  // by root, without itself
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
                       const std::vector<UnitId>& order) {
  return Planner(graph, effects, units, order).run();
}

namespace {

// The first gap between those in placed that live at the same time.
uint64_t first_gap(const MemoryPlan& plan, const Placement& placement, uint32_t buffer,
                   const std::vector<uint32_t>& placed, uint64_t alignment) {
  uint64_t offset = 0;
  for (const uint32_t other : placed) {
    if (!overlap_in_time(plan.buffers[buffer], plan.buffers[other])) continue;
    if (offset + placement.bytes[buffer] <= placement.offsets[other]) break;
    const uint64_t end = placement.offsets[other] + placement.bytes[other];
    offset = std::max(offset, (end + alignment - 1) & ~(alignment - 1));
  }
  return offset;
}

void put(Placement* out, uint32_t buffer, uint32_t host, uint64_t offset) {
  out->offsets[buffer] = offset;
  out->hosts[buffer] = host;
  if (host == kNone) out->total = std::max(out->total, offset + out->bytes[buffer]);
  if (out->bytes[buffer] == 0) return;
  std::vector<uint32_t>& placed = out->placed[host == kNone ? 0 : host + 1];
  const auto at =
      std::upper_bound(placed.begin(), placed.end(), offset,
                       [&](uint64_t given, uint32_t other) { return given < out->offsets[other]; });
  placed.insert(at, buffer);
}

bool put_into_an_output(const MemoryPlan& plan, uint64_t alignment, uint32_t buffer,
                        Placement* out) {
  for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.outputs[i].first <= plan.buffers[buffer].last) continue;
    if (out->room[i] < out->bytes[buffer]) continue;
    const uint64_t offset = first_gap(plan, *out, buffer, out->placed[i + 1], alignment);
    if (offset + out->bytes[buffer] > out->room[i]) continue;
    put(out, buffer, i, offset);
    return true;
  }
  return false;
}

}  // namespace

void place(const MemoryPlan& plan, uint64_t alignment, Placement* out) {
  out->total = 0;
  out->placed.resize(plan.outputs.size() + 1);
  for (std::vector<uint32_t>& placed : out->placed) placed.clear();
  place_more(plan, alignment, 0, out);
}

Placement placed(const MemoryPlan& plan, uint64_t alignment,
                 const std::function<int64_t(const Size&)>& size) {
  Placement placement;
  for (const PlannedBuffer& buffer : plan.buffers) {
    placement.bytes.push_back(static_cast<uint64_t>(size(buffer.bytes)));
  }
  for (const PlannedOutput& output : plan.outputs) {
    placement.room.push_back(static_cast<uint64_t>(size(output.bytes)));
  }
  place(plan, alignment, &placement);
  return placement;
}

void place_more(const MemoryPlan& plan, uint64_t alignment, uint32_t first, Placement* out) {
  const size_t count = plan.buffers.size();
  out->offsets.resize(count);
  out->hosts.resize(count);
  out->placed.resize(plan.outputs.size() + 1);
  out->order.resize(count - first);
  std::iota(out->order.begin(), out->order.end(), first);
  std::sort(out->order.begin(), out->order.end(), [&](uint32_t a, uint32_t b) {
    return out->bytes[a] != out->bytes[b] ? out->bytes[a] > out->bytes[b] : a < b;
  });
  for (const uint32_t buffer : out->order) {
    if (put_into_an_output(plan, alignment, buffer, out)) continue;
    put(out, buffer, kNone, first_gap(plan, *out, buffer, out->placed[0], alignment));
  }
}

void check(const Graph& graph, const MemoryPlan& plan, const Placement& placement,
           uint64_t alignment) {
  auto name = [&](size_t i) { return "%" + graph.values[plan.buffers[i].values[0]].name; };
  auto wrong = [&](const std::string& text) {
    throw Error(GRAFT_INTERNAL, fmt::format("the memory plan of graph {}: {}", graph.name, text));
  };
  std::vector<std::pair<uint64_t, size_t>> events;  // step and what happens: ends before begins
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const uint64_t begin = placement.offsets[i], end = begin + placement.bytes[i];
    const uint32_t host = placement.hosts[i];
    if (begin % alignment != 0) wrong(name(i) + " is not aligned");
    if (host == kNone && end > placement.total) wrong(name(i) + " leaves the arena");
    if (host != kNone) {
      const std::string output = "%" + graph.values[plan.outputs[host].value].name;
      if (end > placement.room[host]) wrong(name(i) + " leaves " + output);
      if (plan.outputs[host].first <= plan.buffers[i].last) {
        wrong(name(i) + " lives when " + output + " is written, whose memory it uses");
      }
    }
    if (begin == end) continue;
    events.emplace_back(uint64_t{plan.buffers[i].first} * 2 + 1, i);
    events.emplace_back(uint64_t{plan.buffers[i].last} * 2 + 2, i);
  }
  std::sort(events.begin(), events.end());
  std::map<std::pair<uint32_t, uint64_t>, size_t> live;  // by host and offset
  auto apart = [&](size_t a, size_t b) {
    if (placement.hosts[a] != placement.hosts[b]) return;
    if (placement.offsets[a] + placement.bytes[a] > placement.offsets[b]) {
      wrong(name(std::max(a, b)) + " and " + name(std::min(a, b)) + " live at once and overlap");
    }
  };
  for (const auto& [when, buffer] : events) {
    const std::pair key(placement.hosts[buffer], placement.offsets[buffer]);
    if (when % 2 == 0) {
      live.erase(key);
      continue;
    }
    const auto [at, added] = live.emplace(key, buffer);
    if (!added) apart(at->second, buffer);
    if (at != live.begin()) apart(std::prev(at)->second, buffer);
    if (std::next(at) != live.end()) apart(buffer, std::next(at)->second);
  }
}

uint64_t arena_bytes(const Graph& graph, uint64_t alignment) {
  const Effects effects(graph);
  const ScheduleUnits units(graph, effects);
  const MemoryPlan plan = plan_memory(graph, effects, units, units.sorted());
  const Placement placement =
      placed(plan, alignment, [&](const Size& size) { return graph.hint(size); });
  check(graph, plan, placement, alignment);
  return placement.total;
}

}  // namespace graft::compiler
