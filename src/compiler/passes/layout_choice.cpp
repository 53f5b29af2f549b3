// src/compiler/passes/layout_choice.cpp: the pass that lays images out channels-last.
#include <algorithm>
#include <unordered_map>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/image_layout.h"
#include "compiler/analysis/reduction.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/grouping/fusion.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class LayoutChoice {
 public:
  explicit LayoutChoice(Graph& graph)
      : graph_(graph),
        effects_(graph),
        turned_(graph.values.size(), false),
        free_(graph.values.size(), false),
        leaves_(graph.values.size(), false) {
    // What only a graph compiled later sees may lie as it likes, where its strides are numbers.
    for (const Output& output : graph.outputs) {
      const bool kept = output.saved && output.alias == kNone && graph.symbols.empty();
      if (output.value != kNone && !kept) leaves_[output.value] = true;
    }
  }

  int run() {
    for (NodeId id : graph_.order) turn(graph_.nodes[id]);
    int changes = 0;
    for (size_t i = 0; i < turned_.size(); ++i) changes += turned_[i];
    if (changes == 0 || !pays()) return 0;
    for (ValueId id = 0; id < turned_.size(); ++id) {
      if (!turned_[id]) continue;
      TensorType& type = graph_.values[id].type;
      type.strides = channels_last_strides(type.sizes);
    }
    for (NodeId id : graph_.order) follow(graph_.nodes[id]);
    for (NodeId id : graph_.order) {
      Node& node = graph_.nodes[id];
      if (lays_out_anew(node) && turned_[node.results[0]]) node.arguments.resize(1);
    }
    put_back();
    return changes;
  }

 private:
  bool image(ValueId value) const {
    return value != kNone && graph_.values[value].type.sizes.size() == 4;
  }

  static bool convolves(const Node& node) {
    return node.is(kConvolution) && !is_true(node, "transposed");
  }

  static bool differentiates(const Node& node) {
    return node.is(kConvolutionBackward) && !is_true(node, "transposed");
  }

  // A row-major copy of what a graph that was compiled before left channels-last.
  bool lays_out_anew(const Node& node) const {
    if (!node.is(kClone) || node.has_effect() || node.arguments.size() != 2) return false;
    const ValueId from = operand(node, 0);
    return from != kNone && laid_out(from) && graph_.values[from].origin == Origin::kInput &&
           !effects_.escapes(node.results[0]);
  }

  bool lies_last(ValueId value) const { return turned_[value] || laid_out(value); }

  // One number for each plane.
  bool spread(ValueId value) const {
    const std::vector<Size>& strides = graph_.values[value].type.strides;
    return strides[2].is(0) && strides[3].is(0);
  }

  bool keeps(const Node& node) const {
    if (node.op->cls == OpClass::kImage) return true;
    if (node.op->cls == OpClass::kCopy && argument(node, "memory_format") != nullptr) return false;
    const auto loops = loops_of(graph_, node);
    return loops && loops->reduced == 0;
  }

  // Whether the node's images become channels-last.
  void turn(const Node& node) {
    if (node.has_effect() || node.views != kNone) return;
    const bool gradient = differentiates(node) && lies_last(node.arguments[1].value);
    bool turns = convolves(node) || gradient || lays_out_anew(node);
    if (!turns && keeps(node)) {
      bool follows = true;
      each_value(node.arguments, [&](ValueId value) {
        if (!image(value)) return;
        turns = turns || lies_last(value);
        follows = follows && (lies_last(value) || spread(value) || free_[value]);
      });
      if (follows && !turns) set_free(node);
      turns = turns && follows;
    }
    if (!turns) return;
    each_value(node.arguments,
               [&](ValueId value) { turned_[value] = turned_[value] || free_[value]; });
    for (ValueId result : node.results) {
      if (turnable(result)) turned_[result] = true;
      if (gradient) break;  // the weight's stays as the weight is
    }
  }

  bool turnable(ValueId result) const {
    return image(result) && effects_.stable(result) && graph_.values[result].type.row_major();
  }

  // Computed of numbers for each plane alone: as whoever uses it wants it.
  void set_free(const Node& node) {
    const auto loops = loops_of(graph_, node);
    if (loops && turnable(node.results[0])) free_[node.results[0]] = true;
  }

  bool laid_out(ValueId value) const { return is_channels_last(graph_.values[value].type); }

  // Permutations of a value that others compute with, and views of all of it, which nothing views
  // or writes further.
  bool follows(const Node& node) const {
    const bool whole = node.is(kDetach, kAlias);
    if (!whole && !node.is(kPermute)) return false;
    if (node.views == kNone || !turned_[node.views]) return false;
    const ValueId result = node.results[0];
    const auto& users = effects_.users[result];
    const bool seen = whole ? leaves_[result] : effects_.escapes(result);
    return !seen && std::none_of(users.begin(), users.end(), [&](NodeId user) {
      return graph_.nodes[user].views != kNone || graph_.nodes[user].has_effect() ||
             (whole && !takes(graph_.nodes[user]));
    });
  }

  void follow(const Node& node) {
    if (!follows(node)) return;
    const std::vector<Size>& from = graph_.values[node.views].type.strides;
    std::vector<Size>& to = graph_.values[node.results[0]].type.strides;
    if (!node.is(kPermute)) {
      to = from;
      return;
    }
    const Argument& dims = node.arguments[1];
    for (size_t i = 0; i < dims.list.size(); ++i) {
      const int64_t dim = dims.list[i].integer.constant_part();
      to[i] = from[static_cast<size_t>(dim < 0 ? dim + 4 : dim)];
    }
  }

  // Whether a user takes the value in its new layout.
  bool takes(const Node& node) const {
    LastReduction reduction;
    if (convolves(node) || differentiates(node) || follows(node) ||
        last_reduction(graph_, node, &reduction)) {
      return true;
    }
    if (node.op->cls == OpClass::kCopy) return true;
    const bool turned = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) {
      return result != kNone && turned_[result];
    });
    return turned || (keeps(node) && node.views == kNone && !node.has_effect());
  }

  bool goes_back(ValueId value) const {
    const auto& users = effects_.users[value];
    return leaves_[value] || std::any_of(users.begin(), users.end(),
                                         [&](NodeId user) { return !takes(graph_.nodes[user]); });
  }

  // A convolution reads and writes its images once less in another layout; going back costs one
  // reading and writing.
  bool pays() const {
    int64_t gain = 0, cost = 0;
    for (ValueId id = 0; id < turned_.size(); ++id) {
      if (!turned_[id]) continue;
      const int64_t bytes = graph_.hint(graph_.values[id].type.extent());
      auto uses = [&](NodeId user) {
        const Node& node = graph_.nodes[user];
        if (convolves(node) || differentiates(node)) gain += bytes;
      };
      uses(graph_.values[id].node);
      std::for_each(effects_.users[id].begin(), effects_.users[id].end(), uses);
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
        const TensorType& type = graph_.values[result].type;
        const Argument format = Argument::of_word("contiguous_format").named("memory_format");
        rewriter.begin(id);
        plain[result] = rewriter.add(kClone, {Argument::of(result), format}, "plain",
                                     TensorType::row_major(type.dtype, type.sizes));
      }
    }
    for (Output& output : graph_.outputs) {
      if (output.value != kNone && leaves_[output.value]) replace(output.value);
      if (output.alias != kNone) replace(output.alias);
    }
    rewriter.finish();
  }

  Graph& graph_;
  const Effects effects_;
  // By value.
  std::vector<bool> turned_;
  std::vector<bool> free_;    // may be turned at no cost
  std::vector<bool> leaves_;  // an output that the caller sees
};

}  // namespace

int choose_layouts(Graph& graph) { return LayoutChoice(graph).run(); }

}  // namespace graft::compiler
