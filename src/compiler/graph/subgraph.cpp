// src/compiler/graph/subgraph.cpp: a part of a graph as a graph of its own.
#include "compiler/graph/subgraph.h"

#include <set>
#include <unordered_set>
#include <utility>

namespace graft::compiler {

namespace {

using Names = std::unordered_set<std::string>;

void note_symbols(const Size& size, Names* names) {
  size.symbols([&](const std::string& name) { names->insert(name); });
}

void note_symbols(const TensorType& type, Names* names) {
  for (const auto* sizes : {&type.sizes, &type.strides}) {
    for (const Size& size : *sizes) note_symbols(size, names);
  }
}

void note_symbols(const std::vector<Argument>& arguments, Names* names) {
  for (const Argument& argument : arguments) {
    if (argument.kind == Argument::Kind::kInteger) note_symbols(argument.integer, names);
    note_symbols(argument.list, names);
  }
}

class Cutter {
 public:
  Cutter(const Graph& whole, const std::vector<NodeId>& nodes)
      : whole_(whole), nodes_(nodes), to_(whole.values.size(), kNone) {}

  Subgraph cut(const std::vector<ValueId>& outputs, std::string name) {
    part_.graph.name = std::move(name);
    add_outside();
    for (NodeId id : nodes_) add_node(whole_.nodes[id]);
    for (ValueId id : outputs) {
      Output output;
      output.value = to_[id];
      part_.graph.outputs.push_back(std::move(output));
    }
    add_symbols();
    return std::move(part_);
  }

 private:
  void add_value(ValueId id) {
    to_[id] = static_cast<ValueId>(part_.graph.values.size());
    part_.graph.values.push_back(whole_.values[id]);
    GraphValue& value = part_.graph.values.back();
    value.mutated = false, value.alias = kNone, value.node = kNone;
    note_symbols(value.type, &symbols_);
  }

  void add_outside() {
    std::set<ValueId> used;  // inputs come first in the whole graph, and so they do here
    std::unordered_set<ValueId> inside;
    for (NodeId id : nodes_) {
      inside.insert(whole_.nodes[id].results.begin(), whole_.nodes[id].results.end());
      each_value(whole_.nodes[id].arguments, [&](ValueId value) { used.insert(value); });
    }
    for (ValueId id : used) {
      if (inside.contains(id)) continue;
      const GraphValue& value = whole_.values[id];
      add_value(id);
      if (value.origin == Origin::kConstant && value.external.empty()) {
        part_.graph.constants.push_back(to_[id]);
        continue;
      }
      GraphValue& input = part_.graph.values.back();
      if (value.origin == Origin::kNode) input.kind = InputKind::kActivation;
      if (value.origin == Origin::kConstant) input.kind = InputKind::kBuffer;
      input.origin = Origin::kInput, input.external.clear();
      part_.graph.inputs.push_back(to_[id]);
      part_.inputs.push_back(id);
    }
  }

  void add_node(const Node& given) {
    const auto id = static_cast<NodeId>(part_.graph.nodes.size());
    Node node = given;
    each_value(node.arguments, [&](ValueId& value) { value = to_[value]; });
    if (node.views != kNone) node.views = to_[node.views];
    for (ValueId& result : node.results) {
      if (result == kNone) continue;
      add_value(result);
      result = to_[result];
      part_.graph.values[result].node = id;
    }
    note_symbols(node.arguments, &symbols_);
    part_.graph.nodes.push_back(std::move(node));
    part_.graph.order.push_back(id);
  }

  void add_symbols() {
    for (const Symbol& symbol : whole_.symbols) {
      if (!symbols_.contains(symbol.name)) continue;
      const auto number = static_cast<int64_t>(part_.graph.symbols.size());
      part_.graph.symbols.push_back(
          {symbol.name, symbol.low, symbol.high, symbol.hint, kNone, number});
    }
  }

  const Graph& whole_;
  const std::vector<NodeId>& nodes_;
  std::vector<ValueId> to_;  // by value of the whole graph
  Names symbols_;
  Subgraph part_;
};

}  // namespace

Subgraph cut_out(const Graph& whole, const std::vector<NodeId>& nodes,
                 const std::vector<ValueId>& outputs, std::string name) {
  return Cutter(whole, nodes).cut(outputs, std::move(name));
}

}  // namespace graft::compiler
