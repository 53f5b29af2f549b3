// src/compiler/views.cpp: where the elements of a view lie in the memory it shares.
#include "compiler/views.h"

#include "compiler/operators.h"

namespace graft::compiler {

namespace {

std::optional<Size> integer(const Argument* argument, int64_t otherwise) {
  if (argument == nullptr || argument->kind == Argument::Kind::kNone) return Size(otherwise);
  if (argument->kind != Argument::Kind::kInteger) return std::nullopt;
  return argument->integer;
}

// A dimension counted from the front; none when it is not a constant inside the rank.
std::optional<size_t> dimension(const std::optional<Size>& given, size_t rank) {
  if (!given || !given->is_constant()) return std::nullopt;
  int64_t dim = given->constant_part();
  if (dim < 0) dim += static_cast<int64_t>(rank);
  if (dim < 0 || dim >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(dim);
}

// A position in a dimension, which may count from the back.
std::optional<Size> position(const std::optional<Size>& given, const Size& size) {
  if (!given) return std::nullopt;
  if (given->is_constant()) return given->constant_part() < 0 ? *given + size : *given;
  return std::nullopt;
}

std::optional<Size> along(const Graph& graph, const Node& node, size_t dim_position,
                          size_t start_position) {
  const TensorType& type = graph.values[node.views].type;
  const auto dim = dimension(integer(argument(node, dim_position, "dim"), 0), type.sizes.size());
  if (!dim) return std::nullopt;
  auto start = position(integer(argument(node, start_position, "start"), 0), type.sizes[*dim]);
  if (!start) return std::nullopt;
  // Slices that begin past the end are empty: where they lie does not matter.
  return *start * type.strides[*dim];
}

std::optional<Size> split(const Graph& graph, const Node& node, size_t result) {
  const TensorType& type = graph.values[node.views].type;
  const auto dim = dimension(integer(argument(node, 2, "dim"), 0), type.sizes.size());
  const auto part = integer(argument(node, 1, "split_size"), 0);
  if (!dim || !part) return std::nullopt;
  return Size(static_cast<int64_t>(result)) * *part * type.strides[*dim];
}

}  // namespace

std::optional<Size> view_offset(const Graph& graph, const Node& node, size_t result) {
  if (node.views == kNone) return Size();
  if (!node.writes.empty()) return Size();  // in place: the operand itself
  if (class_of(node) != OpClass::kView || node.op == "aten.as_strided.default") return std::nullopt;
  if (node.op == "aten.select.int") {
    const Argument* dim = argument(node, 1, "dim");
    return dim == nullptr ? std::nullopt : along(graph, node, 1, 2);
  }
  if (node.op == "aten.slice.Tensor") return along(graph, node, 1, 2);
  if (node.op == "aten.split.Tensor") return split(graph, node, result);
  return Size();
}

std::vector<std::optional<Size>> view_offsets(const Graph& graph, const Effects& effects) {
  std::vector<std::optional<Size>> offsets(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (effects.root[id] == id) offsets[id] = Size();
  }
  for (NodeId id : graph.order) {
    const Node& node = graph.nodes[id];
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == kNone || node.views == kNone || !offsets[node.views]) continue;
      const auto step = view_offset(graph, node, i);
      if (step) offsets[node.results[i]] = *offsets[node.views] + *step;
    }
  }
  return offsets;
}

}  // namespace graft::compiler
