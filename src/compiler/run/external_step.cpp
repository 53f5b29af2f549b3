// src/compiler/run/external_step.cpp: runs a node that no generated kernel computes.
#include "compiler/run/external_step.h"

#include <algorithm>

namespace graft::compiler {

namespace {

bool is_number_of_host(const Graph& graph, ValueId id) {
  const GraphValue& value = graph.values[id];
  return value.origin == Origin::kInput && value.kind == InputKind::kScalar;
}

void resolve(std::vector<Argument>* arguments, const std::function<int64_t(const Size&)>& at) {
  for (Argument& argument : *arguments) {
    if (argument.kind == Argument::Kind::kInteger) argument.integer = at(argument.integer);
    resolve(&argument.list, at);
  }
}

}  // namespace

ExternalStep::ExternalStep(const Graph& graph, NodeId node)
    : graph_(graph), id_(node), direct_(direct_node(graph, graph.nodes[node])) {
  each_value(graph.nodes[node].arguments, [&](ValueId value) { operands_.push_back(value); });
  operand_views_.resize(operands_.size());
  scalars_.resize(operands_.size());
  result_views_.resize(graph.nodes[node].results.size());
}

void ExternalStep::prepare(const std::function<int64_t(const Size&)>& at) {
  node_ = graph_.nodes[id_];
  resolve(&node_.arguments, at);
}

void ExternalStep::run(ExecutionHost& host, Stream& stream, std::span<const TensorView> views,
                       std::span<const Scalar> numbers) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    operand_views_[i] = views[operands_[i]];
    if (is_number_of_host(graph_, operands_[i])) scalars_[i] = numbers[operands_[i]];
  }
  for (size_t i = 0; i < result_views_.size(); ++i) {
    const ValueId value = node_.results[i];
    if (value != kNone) result_views_[i] = views[value];
  }
  const ExternalCall call{graph_, node_, operand_views_, scalars_, result_views_};
  try {
    if (direct_) return direct_(call, host, stream);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    direct_ = {};
    host.lacks_node(error);
  }
  host.run(call, stream);
}

bool ExternalStep::repeats() const {
  const Node& node = graph_.nodes[id_];
  const bool known = node.is(OperatorId::kCopyInto, OperatorId::kIndexPutInto);
  return node.op->name.starts_with("aten.") && (known || !node.has_effect()) &&
         std::ranges::none_of(operands_, [&](ValueId id) { return is_number_of_host(graph_, id); });
}

}  // namespace graft::compiler
