// src/compiler/nodes/training.cpp: nodes of training: a loss, and gradients of what is no image.
#include "compiler/nodes/training.h"

#include <optional>
#include <string_view>

#include "kernels/index/embedding.h"
#include "kernels/loss/loss.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/norm/normalization.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {
namespace {

const TensorType* given_type(const Graph& graph, const Node& node, std::string_view name) {
  const ValueId value = operand(node, name);
  return value == kNone ? nullptr : &graph.values[value].type;
}

bool has_numbers(const TensorType* type, graft_dtype dtype) {
  return type != nullptr && type->dtype == dtype && type->row_major();
}

// A view's elements side by side: the view itself, or a copy.
StagedInput row_major(Stream& stream, const TensorView& view) {
  return {stream, view, !view.contiguous()};
}

// What both nodes of the loss say of it.
struct LossCall {
  bool weighted = false;
  LossReduction reduction = LossReduction::kMean;
  int64_t ignored = 0;
};

// None where the kernels do not take the node's operands.
std::optional<LossCall> loss_call(const Graph& graph, const Node& node) {
  const TensorType* const scores = given_type(graph, node, "self");
  const TensorType* const target = given_type(graph, node, "target");
  const TensorType* const weight = given_type(graph, node, "weight");
  double reduction = 0, ignored = 0;
  if (!number_of(node, "reduction", &reduction) || !number_of(node, "ignore_index", &ignored)) {
    return std::nullopt;
  }
  if (scores == nullptr || scores->sizes.empty() || !is_floating(scores->dtype)) {
    return std::nullopt;
  }
  if (target == nullptr || target->dtype != GRAFT_INT64) return std::nullopt;
  if (target->sizes.size() + 1 != scores->sizes.size()) return std::nullopt;
  if (weight != nullptr && !has_numbers(weight, scores->dtype)) return std::nullopt;
  return LossCall{weight != nullptr, static_cast<LossReduction>(static_cast<int>(reduction)),
                  static_cast<int64_t>(ignored)};
}

DirectNode loss_node(const Graph& graph, const Node& node) {
  const std::optional<LossCall> found = loss_call(graph, node);
  if (!found || node.results.size() != 2 || node.results[1] == kNone) return {};
  const graft_dtype dtype = given_type(graph, node, "self")->dtype;
  for (const ValueId result : node.results) {
    if (graph.values[result].type.dtype != dtype) return {};
  }
  return under(node, [loss = *found](const ExternalCall& call, Stream& stream) {
    nll_loss(stream, call.results[0], call.results[1], call.operands[0], call.operands[1],
             loss.weighted ? &call.operands[2] : nullptr, loss.reduction, loss.ignored);
  });
}

DirectNode loss_gradient_node(const Graph& graph, const Node& node) {
  const std::optional<LossCall> found = loss_call(graph, node);
  const TensorType* const gradient = given_type(graph, node, "grad_output");
  const TensorType* const total = given_type(graph, node, "total_weight");
  const graft_dtype dtype = graph.values[node.results[0]].type.dtype;
  if (!found || gradient == nullptr || gradient->dtype != dtype) return {};
  if (!has_numbers(total, dtype)) return {};
  return under(node, [loss = *found](const ExternalCall& call, Stream& stream) {
    nll_loss_backward(stream, call.results[0], call.operands[0], call.operands[2],
                      loss.weighted ? &call.operands[3] : nullptr, call.operands.back(),
                      loss.reduction, loss.ignored);
  });
}

// How many dimensions of the input one mean is taken over; 0 where the kernel does not take it.
size_t normalized_dims(const Graph& graph, const Node& node) {
  const TensorType* const input = given_type(graph, node, "input");
  const Argument* const shape = argument(node, "normalized_shape");
  if (input == nullptr || shape == nullptr || !is_floating(input->dtype)) return 0;
  const TensorType* const gradient = given_type(graph, node, "grad_out");
  if (gradient == nullptr || gradient->dtype != input->dtype) return 0;
  if (shape->list.size() > input->sizes.size()) return 0;
  for (const char* name : {"mean", "rstd", "weight", "bias"}) {
    const TensorType* const vector = given_type(graph, node, name);
    if (vector != nullptr && !vector->row_major()) return 0;
  }
  for (const ValueId result : node.results) {
    if (result != kNone && !graph.values[result].type.row_major()) return 0;
  }
  return shape->list.size();
}

DirectNode layer_norm_gradient_node(const Graph& graph, const Node& node) {
  const size_t dims = normalized_dims(graph, node);
  if (dims == 0 || node.results.size() != 3) return {};
  const bool weighted = given_type(graph, node, "weight") != nullptr;
  return under(node, [=](const ExternalCall& call, Stream& stream) {
    const auto wanted = [&](size_t i) {
      return call.node.results[i] == kNone ? nullptr : &call.results[i];
    };
    const TensorView& input = call.operands[1];
    int64_t n = 1;
    for (size_t i = 0; i < dims; ++i) n *= input.sizes[input.rank - 1 - static_cast<int>(i)];
    if (input.count() == 0) {
      for (const size_t i : {1, 2}) {
        if (wanted(i) != nullptr) fill(stream, *wanted(i), Scalar::of(0.0));
      }
      return;
    }
    const StagedInput gradient = row_major(stream, call.operands[0]);
    const StagedInput from = row_major(stream, input);
    layer_norm_backward(stream, {wanted(0), wanted(1), wanted(2)}, gradient.view(), from.view(),
                        call.operands[2], call.operands[3], weighted ? &call.operands[4] : nullptr,
                        input.count() / n, n);
  });
}

TensorView as_lines(const TensorView& view, int64_t lines) {
  TensorView all = view;
  all.rank = 2;
  all.sizes[0] = lines, all.sizes[1] = view.count() / lines;
  make_contiguous(all);
  return all;
}

DirectNode embedding_gradient_node(const Graph& graph, const Node& node) {
  const TensorType& table = graph.values[node.results[0]].type;
  const TensorType* const indices = given_type(graph, node, "indices");
  double padding = 0;
  if (!is_floating(table.dtype) || !table.row_major() || !number_of(node, "padding_idx", &padding))
    return {};
  const TensorType* const gradient = given_type(graph, node, "grad_output");
  if (gradient == nullptr || gradient->dtype != table.dtype || indices == nullptr) return {};
  if (indices->dtype != GRAFT_INT64 && indices->dtype != GRAFT_INT32) return {};
  const bool scaled = is_true(node, "scale_grad_by_freq");
  const auto row = static_cast<int64_t>(padding);
  return unless_empty(node, [=](const ExternalCall& call, Stream& stream) {
    const TensorView& to = call.results[0];
    const int64_t count = call.operands[1].count();
    if (count == 0) return fill(stream, to, Scalar::of(0.0));
    const StagedInput gradient = row_major(stream, call.operands[0]);
    const StagedInput indices = row_major(stream, call.operands[1]);
    TensorView line = indices.view();
    line.rank = 1, line.sizes[0] = count, line.strides[0] = 1;
    embedding_dense_backward(stream, to, as_lines(gradient.view(), count), line, row, scaled);
  });
}

}  // namespace

DirectNode training_node(const Graph& graph, const Node& node) {
  using enum OperatorId;
  if (node.results.empty()) return {};
  if (node.is(kLayerNormBackward)) return layer_norm_gradient_node(graph, node);
  if (node.results[0] == kNone) return {};
  if (node.is(kNllLoss, kNllLoss2d)) return loss_node(graph, node);
  if (node.is(kNllLossBackward, kNllLoss2dBackward)) return loss_gradient_node(graph, node);
  if (node.is(kEmbeddingBackward)) return embedding_gradient_node(graph, node);
  return {};
}

}  // namespace graft::compiler
