// src/compiler/passes/copy_removal.cpp: the pass that removes copies and views that change nothing.
#include <unordered_map>

#include "compiler/analysis/replacement.h"
#include "compiler/analysis/views.h"
#include "compiler/graph/text.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

class CopyRemoval {
 public:
  explicit CopyRemoval(Graph& graph)
      : graph_(graph), replacement_(graph), offsets_(view_offsets(graph, replacement_.effects())) {
    for (ValueId id : graph.inputs) remember(id);
    for (ValueId id : graph.constants) remember(id);
  }

  int run() {
    int changes = 0;
    for (NodeId id : graph_.order) {
      Node& node = graph_.nodes[id];
      if (node.has_effect() || node.results.size() != 1 || node.results[0] == kNone) {
        for (ValueId result : node.results) remember(result);
        continue;
      }
      if (node.views != kNone) {
        changes += shorten(node);
        same_place(node.results[0]);
      } else if (node.op->cls == OpClass::kCopy) {
        const ValueId from = operand(node, 0);
        if (from != kNone && !in_host_memory(from) &&
            replacement_.may(graph_, node.results[0], from)) {
          replacement_.set(node.results[0], from);
        }
      }
      remember(node.results[0]);
    }
    return changes + replacement_.apply(graph_);
  }

 private:
  // A node that no generated kernel computes may take the copy only.
  bool in_host_memory(ValueId id) const { return graph_.values[id].kind == InputKind::kScalar; }

  // The same memory seen the same way is the same value.
  std::string place_of(ValueId id) const {
    if (!offsets_[id]) return {};
    return graph_.values[replacement_.effects().root[id]].name + "+" + offsets_[id]->text() + ":" +
           print_type(graph_.values[id].type);
  }

  void remember(ValueId id) {
    if (id == kNone) return;
    const std::string place = place_of(id);
    if (!place.empty()) places_.emplace(place, id);
  }

  void same_place(ValueId id) {
    const auto found = places_.find(place_of(id));
    if (found == places_.end() || found->second == id) return;
    if (!replacement_.effects().escapes(id)) replacement_.set(id, found->second);
  }

  // A view of a view, both row-major, is a view of what that one views.
  int shorten(Node& node) {
    const ValueId from = node.views;
    const NodeId inner_id = graph_.values[from].node;
    if (!reshapes(node) || inner_id == kNone || operand(node, 0) != from) return 0;
    const Node& inner = graph_.nodes[inner_id];
    if (!reshapes(inner) || inner.views == kNone || inner.has_effect()) return 0;
    for (ValueId id : {node.results[0], from, inner.views}) {
      if (!graph_.values[id].type.row_major()) return 0;
    }
    node.arguments[0].value = inner.views;
    node.views = inner.views;
    return 1;
  }

  Graph& graph_;
  Replacement replacement_;
  std::vector<std::optional<Size>> offsets_;
  std::unordered_map<std::string, ValueId> places_;
};

}  // namespace

int remove_copies(Graph& graph) { return change_and_clean<CopyRemoval>(graph); }

}  // namespace graft::compiler
