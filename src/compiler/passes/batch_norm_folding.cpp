// src/compiler/passes/batch_norm_folding.cpp: the pass that folds inference batch norms into
// convolutions.
#include "compiler/analysis/effects.h"
#include "compiler/analysis/operators.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

struct Norm {
  ValueId input = kNone, weight = kNone, bias = kNone, mean = kNone, variance = kNone;
  Argument epsilon;
};

class BatchNormFolding {
 public:
  explicit BatchNormFolding(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    int changes = 0;
    const std::vector<NodeId> order = graph_.order;
    for (NodeId id : order) {
      Norm norm;
      if (matches(id, &norm)) {
        rewriter_.begin(id);
        attach(id, norm);
        ++changes;
      }
      rewriter_.keep(id);
    }
    rewriter_.finish();
    return changes;
  }

 private:
  bool inference_norm(const Node& node, Norm* out) const {
    const bool legit = node.op == "aten._native_batch_norm_legit_no_training.default";
    const Argument* training = argument(node, 5, "training");
    const bool native = node.op == "aten.native_batch_norm.default" && training != nullptr &&
                        training->kind == Argument::Kind::kBool && !training->truth;
    if (!legit && !native) return false;
    const Argument* epsilon = argument(node, legit ? 6 : 7, "eps");
    if (epsilon == nullptr) return false;
    *out = {operand(node, 0), operand(node, 1), operand(node, 2),
            operand(node, 3), operand(node, 4), *epsilon};
    return out->input != kNone && out->mean != kNone && out->variance != kNone;
  }

  bool unused(const Node& node) const {
    for (size_t i = 1; i < node.results.size(); ++i) {
      const ValueId value = node.results[i];
      if (value != kNone && (!effects_.users[value].empty() || effects_.escapes(value))) {
        return false;
      }
    }
    return true;
  }

  bool matches(NodeId id, Norm* norm) const {
    const Node& node = graph_.nodes[id];
    if (node.has_effect() || node.results.empty() || node.results[0] == kNone) return false;
    if (!inference_norm(node, norm) || !unused(node)) return false;
    const NodeId convolution_id = graph_.values[norm->input].node;
    if (convolution_id == kNone) return false;
    const Node& convolution = graph_.nodes[convolution_id];
    if (convolution.op != "aten.convolution.default" || convolution.has_effect()) return false;
    const Argument* transposed = argument(convolution, 6);
    if (transposed == nullptr || transposed->truth) return false;
    if (effects_.users[norm->input].size() != 1 || effects_.escapes(norm->input)) return false;
    if (graph_.values[norm->input].type != graph_.values[node.results[0]].type) return false;
    return usable(*norm, graph_.values[norm->input].type.dtype);
  }

  bool usable(const Norm& norm, graft_dtype dtype) const {
    if (!is_half(dtype) && dtype != GRAFT_FLOAT32 && dtype != GRAFT_FLOAT64) return false;
    for (ValueId value : {norm.weight, norm.bias, norm.mean, norm.variance}) {
      if (value == kNone) continue;
      const graft_dtype given = graph_.values[value].type.dtype;
      if (!lasting(value)) return false;
      if (given != dtype && !(is_half(dtype) && given == GRAFT_FLOAT32)) return false;
    }
    return true;
  }

  // Weights only: what the user passes in would be scaled at every call.
  bool lasting(ValueId value) const {
    if (!effects_.stable(value)) return false;
    const GraphValue& given = graph_.values[value];
    if (given.origin == Origin::kConstant) return true;
    return given.origin == Origin::kInput &&
           (given.kind == InputKind::kParameter || given.kind == InputKind::kBuffer);
  }

  ValueId binary(const char* op, ValueId a, ValueId b, const char* name, const TensorType& type) {
    return rewriter_.add(op, {Argument::of(a), Argument::of(b)}, name, type.dtype, type.sizes);
  }

  ValueId wide(ValueId value) {
    if (!is_half(graph_.values[value].type.dtype)) return value;
    return cast_to(graph_, rewriter_, value, GRAFT_FLOAT32, "float32");
  }

  // What a norm does to each channel of the convolution's result: x * scale + offset.
  struct Affine {
    ValueId scale = kNone, offset = kNone;
  };

  Affine affine(const Norm& norm, ValueId bias) {
    const ValueId mean = wide(norm.mean);
    const TensorType channel = graph_.values[mean].type;
    const ValueId shifted =
        rewriter_.add("aten.add.Scalar", {Argument::of(wide(norm.variance)), norm.epsilon},
                      "variance", channel.dtype, channel.sizes);
    ValueId scale = rewriter_.add("aten.rsqrt.default", {Argument::of(shifted)}, "scale",
                                  channel.dtype, channel.sizes);
    if (norm.weight != kNone)
      scale = binary("aten.mul.Tensor", scale, wide(norm.weight), "scale", channel);
    ValueId offset = bias == kNone ? rewriter_.add("aten.neg.default", {Argument::of(mean)},
                                                   "offset", channel.dtype, channel.sizes)
                                   : binary("aten.sub.Tensor", wide(bias), mean, "offset", channel);
    offset = binary("aten.mul.Tensor", offset, scale, "offset", channel);
    if (norm.bias != kNone)
      offset = binary("aten.add.Tensor", offset, wide(norm.bias), "bias", channel);
    return {scale, offset};
  }

  // The vector as one number for each index of one of rank dimensions.
  ValueId spread(ValueId vector, size_t rank, size_t dimension, const char* name) {
    const TensorType channel = graph_.values[vector].type;
    std::vector<Size> to(rank, Size(1));
    to[dimension] = channel.sizes[0];
    const ValueId view = rewriter_.add("aten.view.default", {Argument::of(vector), list_of(to)},
                                       name, channel.dtype, to);
    graph_.nodes[graph_.values[view].node].views = vector;
    return view;
  }

  void keep_first_result(Node& node) {
    for (size_t i = 1; i < node.results.size(); ++i) {
      if (node.results[i] != kNone) graph_.values[node.results[i]].node = kNone;
    }
    node.results.resize(1);
  }

  // The convolution stays as it is, and its norm becomes two steps behind it, which a library does
  // before it rounds: scaled weights would lie in memory beside the model's own, and scaled halves
  // would be rounded once more than eager rounds anything.
  void attach(NodeId id, const Norm& norm) {
    const NodeId convolution = graph_.values[norm.input].node;
    ValueId bias = operand(graph_.nodes[convolution], 2);
    if (bias != kNone && lasting(bias)) {
      graph_.nodes[convolution].arguments[2] = Argument();
    } else {
      bias = kNone;
    }
    const auto [scale, offset] = affine(norm, bias);
    const TensorType image = graph_.values[norm.input].type;
    const size_t rank = image.sizes.size();
    const ValueId factor = spread(scale, rank, 1, "factor");
    const ValueId addend = spread(offset, rank, 1, "addend");
    TensorType exact = image;
    exact.dtype = graph_.values[scale].type.dtype;
    ValueId value = wide(norm.input);
    graph_.values[value].type = exact;
    value = binary("aten.mul.Tensor", value, factor, "exact", exact);
    graph_.values[value].type = exact;
    Node& last = graph_.nodes[id];
    if (is_half(image.dtype)) {
      value = binary("aten.add.Tensor", value, addend, "exact", exact);
      graph_.values[value].type = exact;
      Argument dtype = Argument::of_word(graft::name_of(image.dtype));
      dtype.name = "dtype";
      last.op = "aten._to_copy.default";
      last.arguments = {Argument::of(value), dtype};
    } else {
      last.op = "aten.add.Tensor";
      last.arguments = {Argument::of(value), Argument::of(addend)};
    }
    keep_first_result(last);
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int fold_batch_norms(Graph& graph) {
  const int changes = BatchNormFolding(graph).run();
  if (changes > 0) remove_dead_code(graph);
  return changes;
}

}  // namespace graft::compiler
