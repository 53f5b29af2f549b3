// src/compiler/batch_norm_folding.cpp: the pass that folds inference batch norms into convolutions.
#include "compiler/effects.h"
#include "compiler/operators.h"
#include "compiler/passes.h"
#include "compiler/rewriter.h"

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
        fold(id, norm);
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
    // Halves would round the weights once more than eager rounds anything.
    const graft_dtype dtype = graph_.values[norm->input].type.dtype;
    if (dtype != GRAFT_FLOAT32 && dtype != GRAFT_FLOAT64) return false;
    for (ValueId value : {operand(convolution, 1), operand(convolution, 2), norm->weight,
                          norm->bias, norm->mean, norm->variance}) {
      if (value == kNone) continue;
      if (!effects_.stable(value) || graph_.values[value].type.dtype != dtype) return false;
      if (!lasting(value)) return false;
    }
    return true;
  }

  // Weights only: what the user passes in would be scaled at every call.
  bool lasting(ValueId value) const {
    const Value& given = graph_.values[value];
    if (given.origin == Origin::kConstant) return true;
    return given.origin == Origin::kInput &&
           (given.kind == InputKind::kParameter || given.kind == InputKind::kBuffer);
  }

  ValueId binary(const char* op, ValueId a, ValueId b, const char* name, const TensorType& type) {
    return rewriter_.add(op, {Argument::of(a), Argument::of(b)}, name, type.dtype, type.sizes);
  }

  void fold(NodeId id, const Norm& norm) {
    const Node convolution = graph_.nodes[graph_.values[norm.input].node];
    const ValueId weight = operand(convolution, 1), bias = operand(convolution, 2);
    const TensorType channel = graph_.values[norm.mean].type;
    const TensorType filters = graph_.values[weight].type;
    rewriter_.begin(id);
    const ValueId shifted =
        rewriter_.add("aten.add.Scalar", {Argument::of(norm.variance), norm.epsilon}, "variance",
                      channel.dtype, channel.sizes);
    ValueId scale = rewriter_.add("aten.rsqrt.default", {Argument::of(shifted)}, "scale",
                                  channel.dtype, channel.sizes);
    if (norm.weight != kNone)
      scale = binary("aten.mul.Tensor", scale, norm.weight, "scale", channel);
    std::vector<Size> spread(filters.sizes.size(), Size(1));
    spread[0] = filters.sizes[0];
    Argument sizes;
    sizes.kind = Argument::Kind::kList;
    for (const Size& size : spread) sizes.list.push_back(Argument::of_integer(size));
    const ValueId factor = rewriter_.add("aten.view.default", {Argument::of(scale), sizes},
                                         "factor", channel.dtype, spread);
    graph_.nodes[graph_.values[factor].node].views = scale;
    const ValueId scaled =
        rewriter_.add("aten.mul.Tensor", {Argument::of(weight), Argument::of(factor)}, "weight",
                      filters.dtype, filters.sizes);
    graph_.values[scaled].type.strides = filters.strides;
    ValueId offset = bias == kNone ? rewriter_.add("aten.neg.default", {Argument::of(norm.mean)},
                                                   "offset", channel.dtype, channel.sizes)
                                   : binary("aten.sub.Tensor", bias, norm.mean, "offset", channel);
    offset = binary("aten.mul.Tensor", offset, scale, "offset", channel);
    if (norm.bias != kNone) offset = binary("aten.add.Tensor", offset, norm.bias, "bias", channel);

    Node& folded = graph_.nodes[id];
    folded.op = convolution.op;
    folded.arguments = convolution.arguments;
    folded.arguments[1] = Argument::of(scaled);
    folded.arguments[2] = Argument::of(offset);
    for (size_t i = 1; i < folded.results.size(); ++i) {
      if (folded.results[i] != kNone) graph_.values[folded.results[i]].node = kNone;
    }
    folded.results.resize(1);
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
