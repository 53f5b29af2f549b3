// src/compiler/passes/dead_code.cpp: the pass that drops what nothing uses.
#include "compiler/passes/passes.h"

namespace graft::compiler {

int remove_dead_code(Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  auto use = [&](ValueId value) {
    if (value != kNone) used[value] = true;
  };
  for (const Output& output : graph.outputs) use(output.value), use(output.alias);
  for (const Symbol& symbol : graph.symbols) use(symbol.value);
  std::vector<NodeId> kept;
  std::vector<bool> gone(graph.nodes.size(), false);
  int changes = 0;
  for (size_t i = graph.order.size(); i-- > 0;) {
    const NodeId id = graph.order[i];
    Node& node = graph.nodes[id];
    bool live = node.has_effect();
    for (ValueId result : node.results) live = live || (result != kNone && used[result]);
    if (live) {
      each_value(node.arguments, use);
      kept.push_back(id);
    } else {
      gone[id] = true;
      ++changes;
    }
  }
  graph.order.assign(kept.rbegin(), kept.rend());
  for (ValueId id : graph.constants) {
    if (used[id]) continue;
    graph.values[id].origin = Origin::kNode;  // with no node: compact() drops it
    ++changes;
  }
  for (Group& group : graph.groups) std::erase_if(group.nodes, [&](NodeId id) { return gone[id]; });
  std::erase_if(graph.groups, [](const Group& group) { return group.nodes.empty(); });
  if (changes > 0) graph.compact();
  return changes;
}

}  // namespace graft::compiler
