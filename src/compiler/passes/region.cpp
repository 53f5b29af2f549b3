// src/compiler/passes/region.cpp: parts of a graph that can each run as one.
#include "compiler/passes/region.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace graft::compiler {

namespace {

// Taken nodes have levels: what follows one through a node outside is at least one level higher.
// So no way out of a level leads back to it, and no two levels need one another.
class Levels {
 public:
  Levels(const Graph& graph, const Effects& effects, const std::vector<bool>& taken)
      : graph_(graph),
        effects_(effects),
        taken_(taken),
        inside_(graph.nodes.size(), 0),
        outside_(graph.nodes.size(), -1) {
    for (NodeId id : graph.order) rise(id);
    std::vector<int64_t> most(graph.nodes.size(), std::numeric_limits<int64_t>::max());
    for (size_t i = graph.order.size(); i-- > 0;) delay(graph.order[i], &most);
  }

  int64_t of(NodeId taken) const { return inside_[taken]; }

  std::vector<int64_t> moments() const {
    std::vector<int64_t> moments(graph_.nodes.size(), -1);
    for (NodeId id : graph_.order) {
      if (is_view(id)) {
        for (NodeId earlier : effects_.before[id]) {
          moments[id] = std::max(moments[id], moments[earlier]);
        }
      } else {
        moments[id] = taken_[id] ? 2 * inside_[id] : 2 * outside_[id] + 1;
      }
    }
    return moments;
  }

 private:
  bool is_view(NodeId id) const { return taken_[id] && graph_.nodes[id].views != kNone; }

  void rise(NodeId id) {
    for (NodeId earlier : effects_.before[id]) {
      inside_[id] = std::max(inside_[id], inside_[earlier]);
      outside_[id] = std::max(outside_[id], outside_[earlier]);
    }
    if (is_view(id)) return;
    if (taken_[id])
      outside_[id] = inside_[id];
    else
      inside_[id] = outside_[id] + 1;
  }

  // To the level of what needs it.
  void delay(NodeId id, std::vector<int64_t>* most) {
    constexpr int64_t kFree = std::numeric_limits<int64_t>::max();
    int64_t& limit = (*most)[id];
    for (NodeId later : effects_.after[id]) {
      if (is_view(later))
        limit = std::min(limit, (*most)[later]);
      else
        limit = std::min(limit, taken_[later] ? inside_[later] : outside_[later]);
    }
    if (!is_view(id) && taken_[id] && limit != kFree) inside_[id] = limit;
  }

  const Graph& graph_;
  const Effects& effects_;
  const std::vector<bool>& taken_;
  std::vector<int64_t> inside_, outside_;  // the level at or behind which a user of either kind is
};

}  // namespace

Regions find_regions(const Graph& graph, const Effects& effects, const std::vector<bool>& taken) {
  const Levels levels(graph, effects, taken);
  std::map<int64_t, std::vector<NodeId>> by_level;
  for (NodeId id : graph.order) {
    if (taken[id] && graph.nodes[id].views == kNone) by_level[levels.of(id)].push_back(id);
  }
  Regions found;
  found.moments = levels.moments();
  for (auto& [level, nodes] : by_level) found.regions.push_back(std::move(nodes));
  return found;
}

}  // namespace graft::compiler
