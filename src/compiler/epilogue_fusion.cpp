// src/compiler/epilogue_fusion.cpp: the pass that joins products with what follows them.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion.h"
#include "compiler/operators.h"
#include "compiler/passes.h"
#include "compiler/units.h"

namespace graft::compiler {

namespace {

constexpr size_t kMaxEpilogue = 8;

// What libraries append to a product: bias and residual, activations, a factor, a cast.
constexpr const char* kEpilogues[] = {
    "aten.add.Tensor",        "aten.mul.Tensor",       "aten.mul.Scalar",
    "aten._to_copy.default",  "aten.relu.default",     "aten.gelu.default",
    "aten.silu.default",      "aten.sigmoid.default",  "aten.tanh.default",
    "aten.hardswish.default", "aten.hardtanh.default", "aten.leaky_relu.default"};

class EpilogueFusion {
 public:
  explicit EpilogueFusion(Graph& graph) : graph_(graph), effects_(graph), units_(graph, effects_) {}

  int run() {
    int changes = 0;
    const size_t before = graph_.groups.size();
    std::vector<Group> groups;
    for (NodeId id : graph_.order) {
      const OpClass cls = class_of(graph_.nodes[id]);
      if (cls != OpClass::kMatmul && cls != OpClass::kConvolution) continue;
      if (units_.of(id) < before || graph_.nodes[id].results.size() != 1) continue;
      if (graph_.nodes[id].results[0] == kNone || graph_.nodes[id].has_effect()) continue;
      Group group;
      group.kind = cls == OpClass::kMatmul ? GroupKind::kMatmul : GroupKind::kConvolution;
      group.nodes = chain(id);
      if (group.nodes.size() == 1) continue;
      group.name = fmt::format("e{}", groups.size());
      changes += static_cast<int>(group.nodes.size()) - 1;
      groups.push_back(group);
    }
    graph_.groups.insert(graph_.groups.end(), groups.begin(), groups.end());
    return changes;
  }

 private:
  bool joins(ValueId value, NodeId next) const {
    const Node& node = graph_.nodes[next];
    if (std::none_of(std::begin(kEpilogues), std::end(kEpilogues),
                     [&](const char* op) { return node.op == op; })) {
      return false;
    }
    const auto loops = loops_of(graph_, node);
    if (!loops || loops->domain != graph_.values[value].type.sizes) return false;
    // Only the layout of the product itself.
    return graph_.values[node.results[0]].type.strides == graph_.values[value].type.strides;
  }

  std::vector<NodeId> chain(NodeId id) {
    std::vector<NodeId> nodes{id};
    const UnitId unit = units_.of(id);
    ValueId value = graph_.nodes[id].results[0];
    while (nodes.size() <= kMaxEpilogue) {
      if (effects_.users[value].size() != 1 || effects_.escapes(value)) break;
      const NodeId next = effects_.users[value][0];
      const UnitId other = units_.of(next);
      if (units_.nodes(other).size() != 1 || !joins(value, next)) break;
      if (units_.path_around(unit, other)) break;
      units_.merge(unit, other);
      nodes.push_back(next);
      value = graph_.nodes[next].results[0];
    }
    return nodes;
  }

  Graph& graph_;
  const Effects effects_;
  Units units_;
};

}  // namespace

int fuse_epilogues(Graph& graph) { return EpilogueFusion(graph).run(); }

}  // namespace graft::compiler
