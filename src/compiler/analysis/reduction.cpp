// src/compiler/analysis/reduction.cpp: a reduction along the last dimensions, as kernels compute
// it.
#include "compiler/analysis/reduction.h"

#include <set>

#include "compiler/analysis/operators.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

bool fold_of(const Node& node, Fold* out) {
  static constexpr struct {
    const char* op;
    Fold fold;
  } kFolds[] = {{"aten.sum.dim_IntList", Fold::kSum},
                {"aten.mean.dim", Fold::kMean},
                {"aten.amax.default", Fold::kMax},
                {"aten.amin.default", Fold::kMin}};
  for (const auto& row : kFolds) {
    if (node.op != row.op) continue;
    *out = row.fold;
    return true;
  }
  return false;
}

}  // namespace

bool last_reduction(const Graph& graph, const Node& node, LastReduction* out) {
  if (!fold_of(node, &out->fold) || node.has_effect() || node.views != kNone) return false;
  if (node.results.size() != 1 || node.results[0] == kNone) return false;
  out->input = operand(node, 0);
  const Argument* dims = argument(node, 1, "dim");
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
  const Argument* keeps = argument(node, 2, "keepdim");
  out->keeps = keeps != nullptr && keeps->truth;
  return is_floating(from.dtype) && is_floating(to.dtype);
}

}  // namespace graft::compiler
