// src/compiler/passes/prologue.cpp: what depends on parameters only, as a graph of its own.
#include "compiler/passes/prologue.h"

#include <algorithm>

#include "compiler/analysis/effects.h"

namespace graft::compiler {

namespace {

bool has_symbol(const Size& size) {
  bool found = false;
  size.symbols([&](const std::string&) { found = true; });
  return found;
}

bool has_symbol(const std::vector<Argument>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
    return argument.kind == Argument::Kind::kInteger ? has_symbol(argument.integer)
                                                     : has_symbol(argument.list);
  });
}

class Splitter {
 public:
  explicit Splitter(const Graph& graph)
      : graph_(graph),
        effects_(graph),
        early_(graph.nodes.size(), false),
        lasts_(graph.values.size(), false),
        given_(graph.values.size(), false),
        escapes_(effects_.leaves) {}

  std::optional<Prologue> run() {
    find_early();
    keep_needed();
    if (moved_.empty()) return std::nullopt;
    Prologue parts;
    parts.main = main_part();
    parts.prologue = prologue_part(&parts.inputs);
    return parts;
  }

 private:
  void find_early() {
    for (const Symbol& symbol : graph_.symbols) {
      if (symbol.value != kNone) escapes_[effects_.root[symbol.value]] = true;
    }
    for (ValueId id : graph_.constants) lasts_[id] = effects_.stable(id);
    for (ValueId id : graph_.inputs) {
      const GraphValue& value = graph_.values[id];
      const bool kept = value.kind == InputKind::kParameter || value.kind == InputKind::kBuffer;
      lasts_[id] = kept && !value.mutated && value.alias == kNone && effects_.stable(id);
    }
    for (NodeId id : graph_.order) early_[id] = is_early(graph_.nodes[id]);
  }

  bool is_early(const Node& node) {
    if (node.has_effect() || node.results.empty() || has_symbol(node.arguments)) return false;
    bool early = true;
    each_value(node.arguments, [&](ValueId value) { early = early && lasts_[value]; });
    for (ValueId result : node.results) {
      if (result == kNone) continue;
      early = early && effects_.stable(result) && !escapes_[effects_.root[result]] &&
              !has_symbol(graph_.values[result].type.extent());
    }
    if (!early) return false;
    for (ValueId result : node.results) {
      if (result != kNone) lasts_[result] = true;
    }
    return true;
  }

  // Backwards: views whose users stay are made there; of the rest only what is used moves.
  void keep_needed() {
    std::vector<bool> needed(graph_.values.size(), false);
    for (size_t i = graph_.order.size(); i-- > 0;) {
      const NodeId id = graph_.order[i];
      const Node& node = graph_.nodes[id];
      auto any = [&](const std::vector<bool>& set) {
        return std::any_of(node.results.begin(), node.results.end(),
                           [&](ValueId result) { return result != kNone && set[result]; });
      };
      const bool asked = any(given_);
      if (early_[id] && node.views != kNone && asked) early_[id] = false;
      if (!early_[id]) {
        each_value(node.arguments, [&](ValueId value) { given_[value] = true; });
        continue;
      }
      if (!asked && !any(needed)) continue;
      moved_.push_back(id);
      each_value(node.arguments, [&](ValueId value) { needed[value] = true; });
    }
    std::reverse(moved_.begin(), moved_.end());
    // A view that stays may be needed in both parts.
    for (size_t i = graph_.order.size(); i-- > 0;) {
      const Node& node = graph_.nodes[graph_.order[i]];
      if (early_[graph_.order[i]] || node.views == kNone || node.has_effect()) continue;
      for (ValueId result : node.results) {
        if (result == kNone || !needed[result]) continue;
        moved_.push_back(graph_.order[i]);
        needed[node.views] = true;
        break;
      }
    }
    std::sort(moved_.begin(), moved_.end(),
              [&](NodeId a, NodeId b) { return effects_.place[a] < effects_.place[b]; });
    const bool computes = std::any_of(moved_.begin(), moved_.end(),
                                      [&](NodeId id) { return graph_.nodes[id].views == kNone; });
    if (!computes) moved_.clear();
  }

  bool crosses(ValueId value) const {
    const NodeId maker = graph_.values[value].node;
    return given_[value] && maker != kNone && early_[maker];
  }

  static void forget(Graph* graph, ValueId value) {
    graph->values[value].origin = Origin::kNode;  // with no node: compact() drops it
    graph->values[value].node = kNone;
  }

  Graph main_part() const {
    Graph main = graph_;
    main.groups.clear();
    std::erase_if(main.order, [&](NodeId id) { return early_[id]; });
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (!crosses(id)) continue;
      GraphValue& value = main.values[id];
      value.origin = Origin::kInput;
      value.kind = InputKind::kBuffer;
      value.node = kNone;
      main.inputs.push_back(id);
    }
    for (ValueId id : graph_.constants) {
      const std::vector<NodeId>& users = effects_.users[id];
      const bool used = effects_.escapes(id) || std::any_of(users.begin(), users.end(),
                                                            [&](NodeId id) { return !early_[id]; });
      if (!used) forget(&main, id);
    }
    main.compact();
    return main;
  }

  Graph prologue_part(std::vector<size_t>* inputs) const {
    Graph part = graph_;
    part.name = graph_.name + "_prologue";
    part.groups.clear();
    part.symbols.clear();
    part.order = moved_;
    part.outputs.clear();
    part.inputs.clear();
    std::vector<bool> used(graph_.values.size(), false);
    for (NodeId id : moved_) {
      each_value(graph_.nodes[id].arguments, [&](ValueId value) { used[value] = true; });
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      if (!used[id]) {
        forget(&part, id);
        continue;
      }
      part.inputs.push_back(id);
      inputs->push_back(i);
    }
    for (ValueId id : graph_.constants) {
      if (!used[id]) forget(&part, id);
    }
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (!crosses(id)) continue;
      Output output;
      output.value = id;
      part.outputs.push_back(output);
    }
    part.compact();
    return part;
  }

  const Graph& graph_;
  const Effects effects_;
  std::vector<bool> early_;    // by node: could be in the prologue
  std::vector<bool> lasts_;    // by value: does not depend on the call
  std::vector<bool> given_;    // by value: used by nodes that stay
  std::vector<bool> escapes_;  // by root
  std::vector<NodeId> moved_;
};

}  // namespace

std::optional<Prologue> split_prologue(const Graph& graph) { return Splitter(graph).run(); }

}  // namespace graft::compiler
