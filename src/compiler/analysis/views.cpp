// src/compiler/analysis/views.cpp: where the elements of a view lie in the memory it shares.
#include "compiler/analysis/views.h"

#include "compiler/analysis/operators.h"

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

// A position in a dimension, which may count from the back, and ends at the front. One past the end
// is of an empty view, whose place does not matter.
std::optional<Size> position(const std::optional<Size>& given, const Size& size) {
  if (!given) return std::nullopt;
  if (!given->is_constant()) {
    return Size::mod(Size::max(*given, size * Size(-1)), Size::max(size, Size(1)));
  }
  return given->constant_part() < 0 ? Size::max(*given + size, Size()) : *given;
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
  const bool unbinds = node.op == "aten.unbind.int";
  const TensorType& type = graph.values[node.views].type;
  const auto dim = dimension(integer(argument(node, unbinds ? 1 : 2, "dim"), 0), type.sizes.size());
  if (!dim) return std::nullopt;
  if (unbinds) return Size(static_cast<int64_t>(result)) * type.strides[*dim];
  const Argument* parts = argument(node, 1);
  if (parts == nullptr) return std::nullopt;
  if (parts->kind != Argument::Kind::kList) {
    const auto part = integer(parts, 0);
    if (!part) return std::nullopt;
    return Size(static_cast<int64_t>(result)) * *part * type.strides[*dim];
  }
  Size before;
  for (size_t i = 0; i < result; ++i) {
    if (i >= parts->list.size()) return std::nullopt;
    const auto part = integer(&parts->list[i], 0);
    if (!part) return std::nullopt;
    before = before + *part;
  }
  return before * type.strides[*dim];
}

// Counts from the first element of the storage, which only what a node has made is known to begin
// at.
std::optional<Size> strided(const Graph& graph, const Node& node) {
  const Argument* start = argument(node, 3, "storage_offset");
  if (start == nullptr || start->kind == Argument::Kind::kNone) return Size();
  const NodeId maker = graph.values[node.views].node;
  const bool made = maker != kNone && graph.nodes[maker].views == kNone;
  return made ? integer(start, 0) : std::nullopt;
}

// Of a diagonal above or below the main one.
std::optional<Size> beside_main(const Graph& graph, const Node& node) {
  const TensorType& type = graph.values[node.views].type;
  const auto offset = integer(argument(node, 1, "offset"), 0);
  const bool below = offset && offset->is_constant() && offset->constant_part() < 0;
  const auto dim = below ? dimension(integer(argument(node, 2, "dim1"), 0), type.sizes.size())
                         : dimension(integer(argument(node, 3, "dim2"), 1), type.sizes.size());
  if (!dim || !offset || !offset->is_constant()) return std::nullopt;
  return (below ? *offset * Size(-1) : *offset) * type.strides[*dim];
}

}  // namespace

std::optional<Size> view_offset(const Graph& graph, const Node& node, size_t result) {
  if (node.views == kNone) return Size();
  if (!node.writes.empty()) return Size();  // in place: the operand itself
  if (class_of(node) != OpClass::kView) return std::nullopt;
  if (node.op == "aten.as_strided.default") return strided(graph, node);
  if (node.op == "aten.select.int") {
    const Argument* dim = argument(node, 1, "dim");
    return dim == nullptr ? std::nullopt : along(graph, node, 1, 2);
  }
  if (node.op == "aten.slice.Tensor") return along(graph, node, 1, 2);
  if (node.op == "aten.diagonal.default") return beside_main(graph, node);
  for (const char* op : {"aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int"}) {
    if (node.op == op) return split(graph, node, result);
  }
  return Size();
}

namespace {

void follow_views(const Graph& graph, ViewPlaces* places) {
  auto& [bases, offsets] = *places;
  for (NodeId id : graph.order) {
    const Node& node = graph.nodes[id];
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == kNone || node.views == kNone || !offsets[node.views]) continue;
      const auto step = view_offset(graph, node, i);
      if (!step) continue;
      offsets[node.results[i]] = *offsets[node.views] + *step;
      bases[node.results[i]] = bases[node.views];
    }
  }
}

ViewPlaces places_of(const Graph& graph, const Effects& effects, bool inputs) {
  ViewPlaces places{effects.root, std::vector<std::optional<Size>>(graph.values.size())};
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const bool known = inputs && graph.values[id].origin == Origin::kInput;
    if (!known && effects.root[id] != id) continue;
    places.bases[id] = id;
    places.offsets[id] = Size();
  }
  follow_views(graph, &places);
  return places;
}

}  // namespace

std::vector<std::optional<Size>> view_offsets(const Graph& graph, const Effects& effects) {
  return places_of(graph, effects, false).offsets;
}

ViewPlaces view_places(const Graph& graph, const Effects& effects) {
  return places_of(graph, effects, true);
}

}  // namespace graft::compiler
