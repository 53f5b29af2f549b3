// src/compiler/analysis/convolution_node.cpp: how a node convolves.
#include "compiler/analysis/convolution_node.h"

namespace graft::compiler {

std::optional<ConvolutionParameters> convolution_parameters(const Graph& graph, const Node& node) {
  const ValueId input = operand(node, "input");
  const size_t rank = input == kNone ? 0 : graph.values[input].type.sizes.size();
  if (rank < 3 || rank > 5) return std::nullopt;
  ConvolutionParameters found;
  const std::pair<const char*, int64_t*> lists[] = {
      {"stride", found.stride}, {"padding", found.padding}, {"dilation", found.dilation}};
  for (const auto& [name, to] : lists) {
    const Argument* given = argument(node, name);
    if (given == nullptr || !integers_of(*given, rank - 2, to)) return std::nullopt;
  }
  double groups;
  if (!number_of(node, "groups", &groups)) return std::nullopt;
  found.groups = static_cast<int64_t>(groups);
  found.transposed = is_true(node, "transposed");
  return found;
}

}  // namespace graft::compiler
