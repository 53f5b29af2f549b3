// src/compiler/passes/batch_norm_folding.cpp: the pass that folds inference batch norms into
// convolutions.
#include "compiler/analysis/effects.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

struct Norm {
  ValueId input = kNone, weight = kNone, bias = kNone, mean = kNone, variance = kNone;
  Argument epsilon;
};

class BatchNormFolding {
 public:
  explicit BatchNormFolding(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    return rewriter_.each([&](NodeId id) {
      Norm norm;
      const bool matched = matches(id, &norm);
      if (matched) attach(id, norm);
      return matched;
    });
  }

 private:
  bool inference_norm(const Node& node, Norm* out) const {
    if (!node.is(kBatchNormInference, kBatchNorm) || is_true(node, "training")) return false;
    const Argument* epsilon = argument(node, "eps");
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
    if (!convolution.is(kConvolution) || convolution.has_effect()) return false;
    if (is_true(convolution, "transposed")) return false;
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

  ValueId wide(ValueId value) {
    const bool half = is_half(graph_.values[value].type.dtype);
    return half ? rewriter_.cast(value, GRAFT_FLOAT32) : value;
  }

  // An elementwise node whose result lies as the image does.
  ValueId exact(OperatorId op, ValueId image, ValueId channels) {
    const TensorType type = graph_.values[image].type;
    const ValueId made = rewriter_.compute(op, "exact", image, channels);
    graph_.values[made].type = type;
    return made;
  }

  // What a norm does to each channel of the convolution's result: x * scale + offset.
  struct Affine {
    ValueId scale = kNone, offset = kNone;
  };

  Affine affine(const Norm& norm, ValueId bias) {
    const ValueId mean = wide(norm.mean);
    const ValueId shifted =
        rewriter_.compute(kAddScalar, "variance", wide(norm.variance), norm.epsilon);
    ValueId scale = rewriter_.compute(kRsqrt, "scale", shifted);
    if (norm.weight != kNone) {
      scale = rewriter_.compute(kMulTensor, "scale", scale, wide(norm.weight));
    }
    ValueId offset = bias == kNone ? rewriter_.compute(kNeg, "offset", mean)
                                   : rewriter_.compute(kSubTensor, "offset", wide(bias), mean);
    offset = rewriter_.compute(kMulTensor, "offset", offset, scale);
    if (norm.bias != kNone) {
      offset = rewriter_.compute(kAddTensor, "bias", offset, wide(norm.bias));
    }
    return {scale, offset};
  }

  // The vector as one number for each channel of an image.
  ValueId spread(ValueId vector, size_t rank, const char* name) {
    std::vector<Size> to(rank, Size(1));
    to[1] = graph_.values[vector].type.sizes[0];
    return rewriter_.reshape(vector, to, name);
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
    rewriter_.begin(id);
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
    const ValueId factor = spread(scale, rank, "factor"), addend = spread(offset, rank, "addend");
    ValueId value = wide(norm.input);
    graph_.values[value].type.strides = image.strides;
    value = exact(kMulTensor, value, factor);
    if (is_half(image.dtype)) value = exact(kAddTensor, value, addend);
    Node& last = graph_.nodes[id];
    last.op = find_operator(is_half(image.dtype) ? kToCopy : kAddTensor);
    last.arguments = is_half(image.dtype) ? cast_arguments(value, image.dtype)
                                          : std::vector{Argument::of(value), Argument::of(addend)};
    keep_first_result(last);
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int fold_batch_norms(Graph& graph) { return change_and_clean<BatchNormFolding>(graph); }

}  // namespace graft::compiler
