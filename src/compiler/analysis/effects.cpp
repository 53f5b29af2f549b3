// src/compiler/analysis/effects.cpp: which values share memory, who writes it, and what must stay
// in order.
#include "compiler/analysis/effects.h"

#include <algorithm>

namespace graft::compiler {

namespace {

// What happened to the memory of a root so far.
struct History {
  NodeId writer = kNone;
  std::vector<NodeId> readers;  // since the writer
};

void follow(Effects* effects, NodeId node, NodeId earlier) {
  if (earlier == kNone || earlier == node) return;
  auto& before = effects->before[node];
  if (std::find(before.begin(), before.end(), earlier) != before.end()) return;
  before.push_back(earlier);
  effects->after[earlier].push_back(node);
}

void follow_memory(const Graph& graph, Effects* effects, NodeId id, std::vector<History>* memory) {
  const Node& node = graph.nodes[id];
  each_value(node.arguments, [&](ValueId value) {
    follow(effects, id, graph.values[value].node);
    History& history = (*memory)[effects->root[value]];
    follow(effects, id, history.writer);
  });
  for (ValueId value : node.writes) {
    History& history = (*memory)[effects->root[value]];
    for (NodeId reader : history.readers) follow(effects, id, reader);
    follow(effects, id, history.writer);
    history = {id, {}};
  }
  each_value(node.arguments, [&](ValueId value) {
    History& history = (*memory)[effects->root[value]];
    if (history.writer != id) history.readers.push_back(id);
  });
}

}  // namespace

Effects::Effects(const Graph& graph)
    : root(graph.values.size()),
      written(graph.values.size(), false),
      leaves(graph.values.size(), false),
      users(graph.values.size()),
      output_uses(graph.values.size(), 0),
      before(graph.nodes.size()),
      after(graph.nodes.size()),
      place(graph.nodes.size(), kNone) {
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    root[id] = id;
    if (graph.values[id].alias != kNone) root[id] = root[graph.values[id].alias];
  }
  for (NodeId id : graph.order) {
    const Node& node = graph.nodes[id];
    for (ValueId result : node.results) {
      if (result != kNone && node.views != kNone) root[result] = root[node.views];
    }
    for (ValueId value : node.writes) written[root[value]] = true;
  }
  for (const Output& output : graph.outputs) {
    if (output.value == kNone) continue;
    ++output_uses[output.value];
    leaves[root[output.value]] = true;
  }
  std::vector<History> memory(graph.values.size());
  NodeId random = kNone, opaque = kNone;
  std::vector<NodeId> since;  // effects since the last opaque node
  for (uint32_t i = 0; i < graph.order.size(); ++i) {
    const NodeId id = graph.order[i];
    const Node& node = graph.nodes[id];
    place[id] = i;
    each_value(node.arguments, [&](ValueId value) {
      if (users[value].empty() || users[value].back() != id) users[value].push_back(id);
    });
    follow_memory(graph, this, id, &memory);
    if (node.random) follow(this, id, random), random = id;
    if (!node.has_effect()) continue;
    follow(this, id, opaque);
    if (node.opaque) {
      for (NodeId earlier : since) follow(this, id, earlier);
      since.clear();
      opaque = id;
    } else {
      since.push_back(id);
    }
  }
}

const Node* Effects::sole_maker(const Graph& graph, ValueId value) const {
  if (value == kNone || users[value].size() != 1 || escapes(value)) return nullptr;
  const NodeId id = graph.values[value].node;
  if (id == kNone || graph.nodes[id].has_effect() || !stable(value)) return nullptr;
  return &graph.nodes[id];
}

}  // namespace graft::compiler
