// src/compiler/nodes/direct_node.cpp: nodes of a compiled graph that call their kernel straight.
#include "compiler/nodes/direct_node.h"

#include <algorithm>
#include <cmath>

#include "compiler/nodes/images.h"
#include "compiler/nodes/indexing.h"
#include "compiler/nodes/moves.h"
#include "compiler/nodes/training.h"
#include "kernels/attention/attention.h"
#include "kernels/move/fill.h"
#include "kernels/random/random.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/op_tag.h"

namespace graft::compiler {
namespace {

constexpr size_t kSeed = 6, kOffset = 7;  // results of attention, for its dropout

bool is_used(const Graph& graph, ValueId value) {
  bool used = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                          [&](const Output& output) { return output.value == value; });
  for (NodeId id : graph.order) {
    each_value(graph.nodes[id].arguments, [&](ValueId given) { used = used || given == value; });
  }
  return used;
}

DirectNode dropout_node(const Graph& graph, const Node& node) {
  double p = 0;
  const ValueId input = operand(node, 0);
  if (input == kNone || !number_of(node, "p", &p)) return {};
  if (!is_true(node, "train") || node.results.size() != 2) return {};
  if (node.results[0] == kNone || node.results[1] == kNone) return {};
  const graft_dtype dtype = graph.values[input].type.dtype;
  if (!is_floating(dtype) || graph.values[node.results[0]].type.dtype != dtype) return {};
  return [p, tag = op_tag("aten::native_dropout")](const ExternalCall& call, ExecutionHost& host,
                                                   Stream& stream) {
    const TensorView& from = call.operands[0];
    if (from.count() == 0) return;
    const OpScope named(tag);
    const Philox numbers =
        host.draw(call.node, philox_increment(static_cast<uint64_t>(from.count())));
    dropout(stream, call.results[0], call.results[1], from, numbers, p);
  };
}

// The bias for every score; dimensions that it lacks or has once repeat.
TensorView spread(const TensorView& bias, const Attention& call) {
  TensorView scores = call.query;
  scores.sizes[3] = call.key.sizes[2];
  return expanded(bias, scores);
}

bool takes_attention(const Graph& graph, const Node& node) {
  if (node.results.size() <= kOffset || node.results[0] == kNone || node.results[1] == kNone) {
    return false;
  }
  double dropout;
  if (!number_of(node, "dropout_p", &dropout) || dropout != 0) return false;
  const graft_dtype dtype = graph.values[node.results[0]].type.dtype;
  if (dtype != GRAFT_FLOAT32 && !is_half(dtype)) return false;
  for (size_t i = 0; i < 3; ++i) {
    const ValueId value = operand(node, i);
    if (value == kNone || graph.values[value].type.dtype != dtype) return false;
    if (graph.values[value].type.sizes.size() != 4) return false;
  }
  const ValueId bias = operand(node, 3);
  if (bias != kNone && !is_floating(graph.values[bias].type.dtype)) return false;
  const TensorType& sums = graph.values[node.results[1]].type;
  return sums.row_major() && sums.dtype == GRAFT_FLOAT32;
}

// The call's scale: what the node says, or by the query's depth. False where that is no number.
struct Scale {
  bool given = false;
  double number = 0;

  double of(const TensorView& query) const {
    return given ? number : 1 / std::sqrt(static_cast<double>(query.sizes[3]));
  }
};

bool scale_of(const Node& node, Scale* scale) {
  const Argument* const given = argument(node, "scale");
  if (given == nullptr || given->kind == Argument::Kind::kNone) return true;
  scale->given = true;
  return number_of(*given, &scale->number);
}

DirectNode attention_node(const Graph& graph, const Node& node) {
  Scale scale;
  if (!takes_attention(graph, node) || !scale_of(node, &scale)) return {};
  const bool causal = is_true(node, "is_causal");
  std::vector<size_t> numbers;
  for (size_t i : {kSeed, kOffset}) {
    if (node.results[i] != kNone && is_used(graph, node.results[i])) numbers.push_back(i);
  }
  return under(node, [=](const ExternalCall& call, Stream& stream) {
    Attention wanted;
    wanted.query = call.operands[0];
    wanted.key = call.operands[1];
    wanted.value = call.operands[2];
    wanted.causal = causal;
    wanted.scale = scale.of(wanted.query);
    TensorView bias;
    if (call.operands.size() > 3) {
      bias = spread(call.operands[3], wanted);
      wanted.bias = &bias;
    }
    attention(stream, call.results[0], call.results[1], wanted);
    for (size_t i : numbers) fill(stream, call.results[i], Scalar::of(int64_t{0}));
  });
}

bool takes_attention_gradient(const Graph& graph, const Node& node) {
  double dropout = 1;
  if (node.results.size() < 3 || !number_of(node, "dropout_p", &dropout) || dropout != 0) {
    return false;
  }
  for (size_t i = 0; i < 3; ++i) {
    if (node.results[i] == kNone) return false;
  }
  for (const char* name : {"grad_out", "query", "key", "value", "out", "logsumexp"}) {
    const ValueId value = operand(node, name);
    if (value == kNone || graph.values[value].type.dtype != GRAFT_FLOAT32) return false;
  }
  const ValueId bias = operand(node, "attn_bias");
  if (bias != kNone && !is_floating(graph.values[bias].type.dtype)) return false;
  return graph.values[operand(node, "logsumexp")].type.row_major();
}

DirectNode attention_gradient_node(const Graph& graph, const Node& node) {
  Scale scale;
  if (!takes_attention_gradient(graph, node) || !scale_of(node, &scale)) return {};
  const bool causal = is_true(node, "is_causal");
  const size_t biased = operand(node, "attn_bias") == kNone ? 0 : 1;
  return under(node, [=](const ExternalCall& call, Stream& stream) {
    const std::span<const TensorView> given = call.operands;
    Attention wanted;
    wanted.query = given[1], wanted.key = given[2], wanted.value = given[3];
    wanted.causal = causal;
    wanted.scale = scale.of(wanted.query);
    wanted.output = &given[4 + biased], wanted.logsumexp = &given[5 + biased];
    TensorView bias;
    if (biased == 1) {
      bias = spread(given[4], wanted);
      wanted.bias = &bias;
    }
    attention_backward(stream, call.results[0], call.results[1], call.results[2], given[0], wanted);
  });
}

}  // namespace

DirectNode direct_node(const Graph& graph, const Node& node) {
  if (node.is(OperatorId::kNativeDropout)) return dropout_node(graph, node);
  if (node.is(OperatorId::kAttention)) return attention_node(graph, node);
  if (node.is(OperatorId::kAttentionBackward)) return attention_gradient_node(graph, node);
  for (const auto make : {direct_image_node, indexing_node, move_node, training_node}) {
    if (DirectNode made = make(graph, node)) return made;
  }
  return {};
}

}  // namespace graft::compiler
