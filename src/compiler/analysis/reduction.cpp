// src/compiler/analysis/reduction.cpp: a reduction along the last dimensions, as kernels compute
// it.
#include "compiler/analysis/reduction.h"

#include <set>

#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

bool fold_of(const Node& node, Fold* out) {
  static constexpr std::pair<OperatorId, Fold> kFolds[] = {
      {kSum, Fold::kSum}, {kMean, Fold::kMean}, {kAmax, Fold::kMax}, {kAmin, Fold::kMin}};
  for (const auto& [op, fold] : kFolds) {
    if (node.is(op)) *out = fold;
  }
  return node.op->cls == OpClass::kReduction;
}

}  // namespace

bool last_reduction(const Graph& graph, const Node& node, LastReduction* out) {
  if (!fold_of(node, &out->fold) || node.has_effect() || node.views != kNone) return false;
  if (node.results.size() != 1 || node.results[0] == kNone) return false;
  out->input = operand(node, 0);
  const Argument* dims = argument(node, "dim");
  if (out->input == kNone || dims == nullptr || dims->kind != Argument::Kind::kList) return false;
  const TensorType& from = graph.values[out->input].type;
  const TensorType& to = graph.values[node.results[0]].type;
  const int64_t rank = static_cast<int64_t>(from.sizes.size());
  std::set<int64_t> reduced;
  for (const Argument& dim : dims->list) {
    if (dim.kind != Argument::Kind::kInteger || !dim.integer.is_constant()) return false;
    const int64_t given = dim.integer.constant_part();
    reduced.insert(given < 0 ? given + rank : given);
  }
  // No dimensions at all: all of them.
  if (reduced.empty()) return false;
  if (*reduced.begin() < 0 || *reduced.rbegin() != rank - 1) return false;
  out->dims = reduced.size();
  if (*reduced.begin() != rank - static_cast<int64_t>(out->dims)) return false;
  out->keeps = is_true(node, "keepdim");
  return is_floating(from.dtype) && is_floating(to.dtype);
}

}  // namespace graft::compiler
