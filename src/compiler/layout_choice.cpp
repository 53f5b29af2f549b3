// src/compiler/layout_choice.cpp: the pass that lays images out channels-last.
#include <algorithm>
#include <unordered_map>

#include "compiler/effects.h"
#include "compiler/fusion.h"
#include "compiler/operators.h"
#include "compiler/passes.h"
#include "compiler/reduction.h"
#include "compiler/rewriter.h"

namespace graft::compiler {

namespace {

// Operators besides convolutions and elementwise ones that give their result the layout of their
// operand.
constexpr const char* kKeepers[] = {"aten.max_pool2d_with_indices.default",
                                    "aten.avg_pool2d.default",
                                    "aten._adaptive_avg_pool2d.default",
                                    "aten._native_batch_norm_legit_no_training.default",
                                    "aten.cat.default",
                                    "aten.constant_pad_nd.default",
                                    "aten.upsample_nearest2d.vec",
                                    "aten.upsample_bilinear2d.vec"};

std::vector<Size> channels_last(const std::vector<Size>& s) {
  return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
}

class LayoutChoice {
 public:
  explicit LayoutChoice(Graph& graph)
      : graph_(graph), effects_(graph), turned_(graph.values.size(), false) {}

  int run() {
    for (NodeId id : graph_.order) turn(graph_.nodes[id]);
    int changes = 0;
    for (size_t i = 0; i < turned_.size(); ++i) changes += turned_[i];
    if (changes == 0 || !pays()) return 0;
    for (ValueId id = 0; id < turned_.size(); ++id) {
      if (!turned_[id]) continue;
      TensorType& type = graph_.values[id].type;
      type.strides = channels_last(type.sizes);
    }
    for (NodeId id : graph_.order) follow(graph_.nodes[id]);
    put_back();
    return changes;
  }

 private:
  bool image(ValueId value) const {
    return value != kNone && graph_.values[value].type.sizes.size() == 4;
  }

  bool convolves(const Node& node) const {
    const Argument* transposed = argument(node, 6);
    return class_of(node) == OpClass::kConvolution && transposed != nullptr &&
           transposed->kind == Argument::Kind::kBool && !transposed->truth;
  }

  bool keeps(const Node& node) const {
    const bool named = std::any_of(std::begin(kKeepers), std::end(kKeepers),
                                   [&](const char* op) { return node.op == op; });
    if (named) return true;
    if (class_of(node) == OpClass::kCopy && argument(node, 9, "memory_format") != nullptr) {
      return false;
    }
    const auto loops = loops_of(graph_, node);
    return loops && loops->reduced == 0;
  }

  // Whether the node's images become channels-last.
  void turn(const Node& node) {
    if (node.has_effect() || node.views != kNone) return;
    bool turns = convolves(node);
    if (!turns && keeps(node)) {
      each_value(node.arguments, [&](ValueId value) { turns = turns || turned_[value]; });
      each_value(node.arguments, [&](ValueId value) {
        const bool follows = !image(value) || turned_[value] || laid_out(value);
        turns = turns && follows;
      });
    }
    if (!turns) return;
    for (ValueId result : node.results) {
      if (!image(result) || !effects_.stable(result)) continue;
      if (graph_.values[result].type.row_major()) turned_[result] = true;
    }
  }

  bool laid_out(ValueId value) const {
    const TensorType& type = graph_.values[value].type;
    return type.strides == channels_last(type.sizes);
  }

  // Permutations of a value that others compute with, but see no view of.
  bool follows(const Node& node) const {
    if (node.op != "aten.permute.default" || node.views == kNone || !turned_[node.views]) {
      return false;
    }
    const ValueId result = node.results[0];
    const auto& users = effects_.users[result];
    return !effects_.escapes(result) && std::none_of(users.begin(), users.end(), [&](NodeId user) {
      return graph_.nodes[user].views != kNone || graph_.nodes[user].has_effect();
    });
  }

  void follow(const Node& node) {
    if (!follows(node)) return;
    const Argument& dims = node.arguments[1];
    const std::vector<Size>& from = graph_.values[node.views].type.strides;
    std::vector<Size>& to = graph_.values[node.results[0]].type.strides;
    for (size_t i = 0; i < dims.list.size(); ++i) {
      const int64_t dim = dims.list[i].integer.constant_part();
      to[i] = from[static_cast<size_t>(dim < 0 ? dim + 4 : dim)];
    }
  }

  // Whether a user takes the value in its new layout.
  bool takes(const Node& node) const {
    Reduction reduction;
    if (convolves(node) || follows(node) || last_reduction(graph_, node, &reduction)) return true;
    if (class_of(node) == OpClass::kCopy) return true;
    const bool turned = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) {
      return result != kNone && turned_[result];
    });
    return turned || (keeps(node) && node.views == kNone && !node.has_effect());
  }

  bool goes_back(ValueId value) const {
    const auto& users = effects_.users[value];
    return effects_.escapes(value) || std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return !takes(graph_.nodes[user]);
           });
  }

  // A convolution reads and writes its images once less in another layout; going back costs one
  // reading and writing.
  bool pays() const {
    int64_t gain = 0, cost = 0;
    for (ValueId id = 0; id < turned_.size(); ++id) {
      if (!turned_[id]) continue;
      const int64_t bytes = graph_.hint(graph_.values[id].type.extent());
      if (convolves(graph_.nodes[graph_.values[id].node])) gain += bytes;
      for (NodeId user : effects_.users[id]) {
        if (convolves(graph_.nodes[user])) gain += bytes;
      }
      if (goes_back(id)) cost += bytes;
    }
    return gain > cost;
  }

  void put_back() {
    Rewriter rewriter(graph_);
    std::unordered_map<ValueId, ValueId> plain;
    const std::vector<NodeId> order = graph_.order;
    auto replace = [&](ValueId& value) {
      const auto found = plain.find(value);
      if (found != plain.end()) value = found->second;
    };
    for (NodeId id : order) {
      if (!takes(graph_.nodes[id])) {
        each_value(graph_.nodes[id].arguments, replace);
        replace(graph_.nodes[id].views);
      }
      rewriter.keep(id);
      const std::vector<ValueId> results = graph_.nodes[id].results;
      for (ValueId result : results) {
        if (result == kNone || !turned_[result] || !goes_back(result)) continue;
        const TensorType type = graph_.values[result].type;
        Argument format = Argument::of_word("contiguous_format");
        format.name = "memory_format";
        rewriter.begin(id);
        plain[result] = rewriter.add("aten.clone.default", {Argument::of(result), format}, "plain",
                                     type.dtype, type.sizes);
      }
    }
    for (Output& output : graph_.outputs) {
      if (output.value != kNone) replace(output.value);
      if (output.alias != kNone) replace(output.alias);
    }
    rewriter.finish();
  }

  Graph& graph_;
  const Effects effects_;
  std::vector<bool> turned_;  // by value
};

}  // namespace

int choose_layouts(Graph& graph) { return LayoutChoice(graph).run(); }

}  // namespace graft::compiler
