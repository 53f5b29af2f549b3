// src/compiler/prologue.cpp: what a graph computes of its parameters and buffers alone.
#include "compiler/prologue.h"

#include <algorithm>

#include "compiler/effects.h"
#include "compiler/passes.h"

namespace graft::compiler {

namespace {

bool fixed(const std::vector<Size>& sizes) {
  return std::ranges::all_of(sizes, [](const Size& size) { return size.is_constant(); });
}

bool fixed(const std::vector<Argument>& arguments) {
  return std::ranges::all_of(arguments, [](const Argument& argument) {
    return argument.integer.is_constant() && fixed(argument.list);
  });
}

class Prologue {
 public:
  explicit Prologue(Graph& graph)
      : graph_(graph),
        effects_(graph),
        known_(graph.values.size(), false),
        returned_(graph.values.size(), false),
        taken_(graph.nodes.size(), false) {}

  std::optional<Graph> take() {
    find();
    if (std::ranges::none_of(taken_, [](bool one) { return one; })) return std::nullopt;
    Graph prologue = graph_;
    leave_rest();
    return outputs_of(std::move(prologue));
  }

 private:
  void find() {
    for (const ValueId id : graph_.constants) known_[id] = true;
    for (const ValueId id : graph_.inputs) {
      const Value& value = graph_.values[id];
      const bool kept = value.kind == InputKind::kParameter || value.kind == InputKind::kBuffer;
      known_[id] = kept && !value.mutated && effects_.stable(id) && fixed(value.type.sizes);
    }
    for (const Output& output : graph_.outputs) {
      for (const ValueId id : {output.value, output.alias, output.mutation}) {
        if (id != kNone) returned_[effects_.root[id]] = true;
      }
    }
    for (const NodeId id : graph_.order) {
      const Node& node = graph_.nodes[id];
      if (!depends_on_known(node)) continue;
      if (node.views == kNone && !makes_of_memory(node)) continue;
      for (const ValueId result : node.results) {
        if (result != kNone) known_[result] = true;
      }
      taken_[id] = node.views == kNone;
    }
  }

  bool depends_on_known(const Node& node) const {
    bool some = false, all = !node.has_effect() && fixed(node.arguments);
    each_value(node.arguments, [&](ValueId value) {
      some = true;
      all = all && known_[value];
    });
    return some && all;
  }

  // Whether all results are new memory of known size that nobody writes or gets to see.
  bool makes_of_memory(const Node& node) const {
    return std::ranges::all_of(node.results, [&](ValueId id) {
      return id == kNone || (effects_.stable(id) && !returned_[effects_.root[id]] &&
                             fixed(graph_.values[id].type.sizes));
    });
  }

  // Makes of the graph what remains: the results of what was taken are inputs.
  void leave_rest() {
    std::vector<ValueId> made;
    for (const NodeId id : graph_.order) {
      if (!taken_[id]) continue;
      for (const ValueId result : graph_.nodes[id].results) {
        if (result == kNone) continue;
        Value& value = graph_.values[result];
        value.origin = Origin::kInput;
        value.kind = InputKind::kParameter;
        value.node = kNone;
        made.push_back(result);
      }
    }
    std::erase_if(graph_.order, [&](NodeId id) { return taken_[id]; });
    const size_t before = graph_.inputs.size();
    graph_.inputs.insert(graph_.inputs.end(), made.begin(), made.end());
    remove_dead_code(graph_);
    drop_unused_inputs(graph_, before);
  }

  // Drops the inputs from a place on that no node and no output uses.
  static void drop_unused_inputs(Graph& graph, size_t first) {
    std::vector<bool> used(graph.values.size(), false);
    for (const NodeId id : graph.order) {
      each_value(graph.nodes[id].arguments, [&](ValueId value) { used[value] = true; });
    }
    for (const Output& output : graph.outputs) {
      if (output.value != kNone) used[output.value] = true;
    }
    for (size_t i = graph.inputs.size(); i-- > first;) {
      const ValueId id = graph.inputs[i];
      if (used[id]) continue;
      graph.values[id].origin = Origin::kNode;  // with no node: compact() drops it
      graph.inputs.erase(graph.inputs.begin() + static_cast<ptrdiff_t>(i));
    }
    graph.compact();
  }

  // Makes of a copy of the graph what was taken, for the inputs that the rest has got.
  Graph outputs_of(Graph prologue) const {
    prologue.name += "_prologue";
    prologue.outputs.clear();
    prologue.symbols.clear();
    for (const ValueId id : graph_.inputs) {
      const ValueId there = prologue.find(graph_.values[id].name);
      if (prologue.values[there].origin != Origin::kNode) continue;
      Output output;
      output.value = there;
      prologue.outputs.push_back(output);
    }
    std::erase_if(prologue.order, [&](NodeId id) {
      const Node& node = prologue.nodes[id];
      return !taken_[id] && (node.views == kNone || !known_[node.results.front()]);
    });
    remove_dead_code(prologue);
    drop_unused_inputs(prologue, 0);
    return prologue;
  }

  Graph& graph_;
  const Effects effects_;
  std::vector<bool> known_;     // by value: depends on nothing that changes from call to call
  std::vector<bool> returned_;  // by root
  std::vector<bool> taken_;     // by node
};

}  // namespace

std::optional<Graph> take_prologue(Graph& graph) { return Prologue(graph).take(); }

}  // namespace graft::compiler
