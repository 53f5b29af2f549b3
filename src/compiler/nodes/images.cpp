// src/compiler/nodes/images.cpp: nodes of networks over images, calling their kernels
// straight.
#include "compiler/nodes/images.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "compiler/analysis/convolution_node.h"
#include "compiler/analysis/image_layout.h"
#include "kernels/convolution/convolution.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/norm/normalization.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft::compiler {
namespace {

// Which of a call's operands an argument is; none where it is no tensor.
std::optional<size_t> index_of(const Node& node, size_t position) {
  if (operand(node, position) == kNone) return std::nullopt;
  size_t before = 0;
  for (size_t i = 0; i < position; ++i) {
    each_value(node.arguments[i].list, [&](ValueId) { ++before; });
    before += node.arguments[i].kind == Argument::Kind::kValue;
  }
  return before;
}

const TensorView* at(std::span<const TensorView> views, std::optional<size_t> index) {
  return index ? &views[*index] : nullptr;
}

// The result, where the node gives it.
const TensorView* wanted(const ExternalCall& call, size_t result) {
  return call.node.results[result] == kNone ? nullptr : &call.results[result];
}

// What batch norm's kernels take: images in one dense layout, vectors side by side of one dtype.
class NormOperands {
 public:
  explicit NormOperands(const Graph& graph) : graph_(graph) {}

  void image(ValueId value) {
    if (value == kNone) return;
    const TensorType& type = graph_.values[value].type;
    if (image_ == nullptr) image_ = &type;
    fits_ = fits_ && is_floating(type.dtype) && type.sizes.size() >= 2 &&
            (type.row_major() || is_channels_last(type)) && type == *image_;
  }

  void vectors(std::initializer_list<ValueId> values) {
    for (const ValueId value : values) {
      if (value == kNone) continue;
      const TensorType& type = graph_.values[value].type;
      if (vector_ == nullptr) vector_ = &type;
      fits_ = fits_ && type.dtype == vector_->dtype && type.sizes.size() == 1 && type.row_major();
    }
  }

  bool fit() const { return fits_; }

 private:
  const Graph& graph_;
  const TensorType* image_ = nullptr;
  const TensorType* vector_ = nullptr;
  bool fits_ = true;
};

// Which of a call's operands the vectors of a batch norm's arguments 1 to 4 are.
struct NormVectors {
  std::optional<size_t> weight, bias;
  size_t mean = 0, variance = 0;
};

// None where the kernels do not take the node's operands; more: vectors among its results.
std::optional<NormVectors> norm_vectors(const Graph& graph, const Node& node,
                                        std::initializer_list<ValueId> more) {
  const auto mean = index_of(node, 3), variance = index_of(node, 4);
  if (!mean || !variance) return std::nullopt;
  NormOperands operands(graph);
  operands.image(operand(node, 0));
  operands.image(node.results[0]);
  operands.vectors({operand(node, 1), operand(node, 2), operand(node, 3), operand(node, 4)});
  operands.vectors(more);
  if (!operands.fit()) return std::nullopt;
  return NormVectors{index_of(node, 1), index_of(node, 2), *mean, *variance};
}

DirectNode norm_node(const Graph& graph, const Node& node) {
  double momentum = 0, epsilon = 0;
  if (node.arguments.size() != 8 || node.results.size() != 5) return {};
  if (!is_true(node, "training")) return {};
  if (!number_of(node, "momentum", &momentum)) return {};
  if (!number_of(node, "eps", &epsilon)) return {};
  if (std::ranges::count(node.results, kNone) != 0) return {};
  const auto found = norm_vectors(
      graph, node, {node.results[1], node.results[2], node.results[3], node.results[4]});
  if (!found) return {};
  return under(node, [=, vectors = *found](const ExternalCall& call, Stream& stream) {
    const std::span<const TensorView> given = call.operands, to = call.results;
    if (given[0].count() == 0) {
      for (size_t i : {1, 2}) fill(stream, to[i], Scalar::of(0.0));
      copy(stream, to[3], given[vectors.mean]);
      copy(stream, to[4], given[vectors.variance]);
      return;
    }
    batch_norm_train(stream, to[0], to[1], to[2], &given[vectors.mean], &given[vectors.variance],
                     given[0], at(given, vectors.weight), at(given, vectors.bias), momentum,
                     epsilon, {&to[3], &to[4]});
  });
}

DirectNode inference_norm_node(const Graph& graph, const Node& node) {
  double epsilon = 0;
  if (node.arguments.size() != 7 || node.results.empty() || node.results[0] == kNone) return {};
  if (!number_of(node, "eps", &epsilon)) return {};
  const auto found = norm_vectors(graph, node, {});
  if (!found) return {};
  return under(node, [epsilon, vectors = *found](const ExternalCall& call, Stream& stream) {
    const std::span<const TensorView> given = call.operands;
    if (given[0].count() == 0) return;
    batch_norm_inference(stream, call.results[0], given[0], at(given, vectors.weight),
                         at(given, vectors.bias), given[vectors.mean], given[vectors.variance],
                         epsilon);
  });
}

bool same_dtype(const Graph& graph, std::initializer_list<ValueId> values) {
  return std::ranges::all_of(values, [&](ValueId value) {
    return value != kNone &&
           graph.values[value].type.dtype == graph.values[*values.begin()].type.dtype;
  });
}

// Room for a view's elements in another view's layout: the view itself where it has that.
struct LaidOut {
  LaidOut(Stream& stream, const TensorView& given, const TensorView& like)
      : elsewhere(!std::equal(given.strides, given.strides + given.rank, like.strides)),
        view(elsewhere ? like : given),
        memory(stream,
               elsewhere ? static_cast<uint64_t>(given.count()) * size_of(given.dtype) : 0) {
    if (elsewhere) view.address = memory.address();
  }

  bool elsewhere;
  TensorView view;
  Workspace memory;
};

DirectNode norm_gradient_node(const Graph& graph, const Node& node) {
  double epsilon = 0;
  if (node.arguments.size() != 10 || node.results.size() != 3) return {};
  if (!number_of(node, "eps", &epsilon)) return {};
  const bool train = is_true(node, "train");
  const auto weight = index_of(node, 2), mean = index_of(node, train ? 5 : 3),
             spread = index_of(node, train ? 6 : 4);
  if (!mean || !spread) return {};
  NormOperands operands(graph);
  operands.image(operand(node, 1));
  operands.vectors({operand(node, 2), operand(node, train ? 5 : 3), operand(node, train ? 6 : 4),
                    node.results[1], node.results[2]});
  if (!operands.fit() || !same_dtype(graph, {operand(node, 0), operand(node, 1)})) return {};
  return under(node, [=](const ExternalCall& call, Stream& stream) {
    const std::span<const TensorView> given = call.operands;
    NormGradients gradients{wanted(call, 0), wanted(call, 1), wanted(call, 2)};
    if (given[1].count() == 0) {
      for (const TensorView* one : {gradients.weight, gradients.bias}) {
        if (one != nullptr) fill(stream, *one, Scalar::of(0.0));
      }
      return;
    }
    const LaidOut gradient(stream, given[0], given[1]);
    if (gradient.elsewhere) copy(stream, gradient.view, given[0]);
    const LaidOut input(stream, gradients.input == nullptr ? given[1] : *gradients.input, given[1]);
    if (gradients.input != nullptr) gradients.input = &input.view;
    batch_norm_backward(stream, gradients, gradient.view, given[1], at(given, weight), given[*mean],
                        given[*spread], train, epsilon);
    if (input.elsewhere) copy(stream, call.results[0], input.view);
  });
}

DirectNode convolution_gradient_node(const Graph& graph, const Node& node) {
  const auto found = convolution_parameters(graph, node);
  if (!found || node.arguments.size() != 11 || node.results.size() != 3) return {};
  const TensorType& input = graph.values[operand(node, "input")].type;
  if (!is_floating(input.dtype)) return {};
  for (const char* name : {"grad_output", "weight"}) {
    const ValueId value = operand(node, name);
    if (value == kNone || graph.values[value].type.dtype != input.dtype) return {};
    if (graph.values[value].type.sizes.size() != input.sizes.size()) return {};
  }
  return under(node, [found = *found](const ExternalCall& call, Stream& stream) {
    const TensorView &gradient = call.operands[0], &images = call.operands[1];
    if (const TensorView* to = wanted(call, 0); to != nullptr && to->count() > 0) {
      convolution_backward_input(stream, *to, gradient, call.operands[2], found);
    }
    if (const TensorView* to = wanted(call, 1); to != nullptr && to->count() > 0) {
      convolution_backward_weight(stream, *to, gradient, images, found);
    }
    if (const TensorView* to = wanted(call, 2)) {
      convolution_backward_bias(stream, *to, gradient);
    }
  });
}

// What a library's call does not take, transposed ones among them.
DirectNode convolution_node(const Graph& graph, const Node& node) {
  const auto found = convolution_parameters(graph, node);
  if (!found || node.results.size() != 1 || node.results[0] == kNone) return {};
  const TensorType& input = graph.values[operand(node, "input")].type;
  if (!is_floating(input.dtype)) return {};
  for (const char* name : {"weight", "bias"}) {
    const ValueId value = operand(node, name);
    if (value != kNone && graph.values[value].type.dtype != input.dtype) return {};
  }
  const auto bias = index_of(node, 2);
  return unless_empty(node, [found = *found, bias](const ExternalCall& call, Stream& stream) {
    if (call.operands[0].count() == 0) {
      throw Error(GRAFT_UNSUPPORTED, "a convolution of no element is not a kernel's");
    }
    convolution(stream, call.results[0], call.operands[0], call.operands[1],
                at(call.operands, bias), found);
  });
}

}  // namespace

DirectNode direct_image_node(const Graph& graph, const Node& node) {
  const bool plain =
      std::ranges::none_of(node.arguments, [](const Argument& one) { return !one.name.empty(); });
  if (!plain) return {};
  using enum OperatorId;
  if (node.is(kBatchNormFunctional)) return norm_node(graph, node);
  if (node.is(kBatchNormInference)) return inference_norm_node(graph, node);
  if (node.is(kBatchNormBackward)) return norm_gradient_node(graph, node);
  if (node.is(kConvolutionBackward)) return convolution_gradient_node(graph, node);
  if (node.is(kConvolution)) return convolution_node(graph, node);
  return {};
}

}  // namespace graft::compiler
