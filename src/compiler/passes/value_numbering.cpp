// src/compiler/passes/value_numbering.cpp: the pass that merges nodes that compute the same.
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/analysis/replacement.h"
#include "compiler/graph/text.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

class Numbering {
 public:
  explicit Numbering(Graph& graph)
      : graph_(graph), replacement_(graph), version_(graph.values.size(), 0) {}

  int run() {
    for (ValueId id : graph_.constants) merge_constant(id);
    for (NodeId id : graph_.order) {
      const Node& node = graph_.nodes[id];
      if (!node.has_effect() && !node.results.empty()) merge(id);
      for (ValueId value : node.writes) ++version_[replacement_.effects().root[value]];
    }
    return replacement_.apply(graph_);
  }

 private:
  void merge_constant(ValueId id) {
    const GraphValue& value = graph_.values[id];
    if (!value.external.empty()) return;
    std::string key = print_type(value.type) + "=";
    for (double x : value.data) key += print_float(x) + ",";
    for (int64_t x : value.whole) key += fmt::format("{},", x);
    const auto [found, added] = constants_.emplace(key, id);
    if (!added && replacement_.may(graph_, id, found->second)) {
      replacement_.set(id, found->second);
    }
  }

  // The operator, its arguments, the state of the memory that it reads, and the results' types.
  std::string key_of(const Node& node) {
    const Effects& effects = replacement_.effects();
    std::string key = node.op->name;
    std::vector<Argument> arguments = node.arguments;
    each_value(arguments, [&](ValueId& value) {
      value = replacement_.now(value);
      if (!effects.stable(value)) key += fmt::format("@{}", version_[effects.root[value]]);
    });
    for (const Argument& argument : arguments) key += "," + print_argument(graph_, argument);
    for (ValueId result : node.results) {
      key += ":" + (result == kNone ? "none" : print_type(graph_.values[result].type));
    }
    return key;
  }

  void merge(NodeId id) {
    const Node& node = graph_.nodes[id];
    const auto [found, added] = nodes_.emplace(key_of(node), id);
    if (added) return;
    const Node& first = graph_.nodes[found->second];
    for (size_t i = 0; i < node.results.size(); ++i) {
      if ((node.results[i] == kNone) != (first.results[i] == kNone)) return;
      if (node.results[i] == kNone || node.views != kNone) continue;
      if (!replacement_.may(graph_, node.results[i], first.results[i])) return;
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] != kNone) replacement_.set(node.results[i], first.results[i]);
    }
  }

  Graph& graph_;
  Replacement replacement_;
  std::vector<int> version_;  // by root: how often it was written
  std::unordered_map<std::string, NodeId> nodes_;
  std::unordered_map<std::string, ValueId> constants_;
};

}  // namespace

int number_values(Graph& graph) { return change_and_clean<Numbering>(graph); }

}  // namespace graft::compiler
