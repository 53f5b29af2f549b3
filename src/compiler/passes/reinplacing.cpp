// src/compiler/passes/reinplacing.cpp: the pass that writes an input's memory where its new state
// was computed beside it and then copied over.
#include <algorithm>
#include <vector>

#include "compiler/analysis/replacement.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class Reinplacing {
 public:
  explicit Reinplacing(Graph& graph) : graph_(graph), replacement_(graph) {}

  int run() {
    std::vector<NodeId> gone;
    for (NodeId id : graph_.order) {
      if (graph_.nodes[id].is(kCopyInto) && writes_instead(id)) gone.push_back(id);
    }
    std::erase_if(graph_.order,
                  [&](NodeId id) { return std::ranges::find(gone, id) != gone.end(); });
    replacement_.apply(graph_);
    return static_cast<int>(gone.size());
  }

 private:
  const Effects& effects() const { return replacement_.effects(); }

  // Turns the nodes whose result a copy brings into its memory into writes of that memory.
  bool writes_instead(NodeId copy) {
    const ValueId memory = operand(graph_.nodes[copy], 0), last = operand(graph_.nodes[copy], 1);
    if (last == kNone || effects().root[memory] != memory || !only_writer(copy, memory))
      return false;
    if (graph_.values[memory].type != graph_.values[last].type) return false;
    std::vector<NodeId> writers;  // the last one first
    for (ValueId state = last; state != memory;) {
      const NodeId writer = graph_.values[state].node;
      if (writer == kNone || !may_write(writer, state, copy)) return false;
      writers.push_back(writer);
      state = operand(graph_.nodes[writer], 0);
    }
    if (writers.empty()) return false;
    for (NodeId id : writers) {
      Node& node = graph_.nodes[id];
      node.op = find_operator(kIndexPutInto);
      node.views = operand(node, 0);
      node.writes = {node.views};
    }
    const Node& gone = graph_.nodes[copy];
    if (!gone.results.empty() && gone.results[0] != kNone) replacement_.set(gone.results[0], last);
    return true;
  }

  bool only_writer(NodeId copy, ValueId memory) const {
    return std::ranges::all_of(graph_.order, [&](NodeId id) {
      return id == copy || std::ranges::none_of(graph_.nodes[id].writes, [&](ValueId value) {
               return effects().root[value] == memory;
             });
    });
  }

  // Whether nobody needs the state that a node changes after it, nor its result beside the memory.
  // After the copy, the input is what the last node made of it.
  bool may_write(NodeId writer, ValueId result, NodeId copy) const {
    const Node& node = graph_.nodes[writer];
    const ValueId state = operand(node, 0);
    if (!node.is(kIndexPut) || state == kNone || node.has_effect()) return false;
    if (effects().leaves[result] || graph_.values[state].type != graph_.values[result].type) {
      return false;
    }
    const auto& place = effects().place;
    const bool input = state == operand(graph_.nodes[copy], 0);
    return std::ranges::all_of(graph_.order, [&](NodeId id) {
      if (id == copy || place[id] < place[writer] || (input && place[id] > place[copy]))
        return true;
      size_t uses = 0;
      each_value(graph_.nodes[id].arguments,
                 [&](ValueId value) { uses += effects().root[value] == effects().root[state]; });
      return uses == (id == writer ? 1 : 0);
    });
  }

  Graph& graph_;
  Replacement replacement_;
};

}  // namespace

int reinplace_writes(Graph& graph) { return change_and_clean<Reinplacing>(graph); }

}  // namespace graft::compiler
