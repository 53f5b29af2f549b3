// src/compiler/analysis/views.cpp: where the elements of a view lie in the memory it shares.
#include "compiler/analysis/views.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

// An integer, or its default where it was left out.
std::optional<Size> integer(const Node& node, std::string_view name) {
  const Argument* given = argument(node, name);
  if (given != nullptr && given->kind == Argument::Kind::kInteger) return given->integer;
  if (given != nullptr && given->kind != Argument::Kind::kNone) return std::nullopt;
  const SchemaArgument* known = node.op->parameter(name);
  if (known == nullptr || known->text.empty()) return std::nullopt;
  return Size(static_cast<int64_t>(known->number));
}

// A dimension counted from the front; none when it is not a constant inside the rank.
std::optional<size_t> dimension(const Node& node, std::string_view name, size_t rank) {
  const std::optional<Size> given = integer(node, name);
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

std::optional<Size> along(const Graph& graph, const Node& node, std::string_view start_name) {
  const TensorType& type = graph.values[node.views].type;
  const auto dim = dimension(node, "dim", type.sizes.size());
  if (!dim) return std::nullopt;
  auto start = position(integer(node, start_name), type.sizes[*dim]);
  if (!start) return std::nullopt;
  // Slices that begin past the end are empty: where they lie does not matter.
  return *start * type.strides[*dim];
}

// How many places of the dimension stand before a result of a split.
std::optional<Size> places_before(const Node& node, size_t result) {
  const Size count(static_cast<int64_t>(result));
  if (node.is(kUnbind)) return count;
  if (node.is(kSplit)) {
    const auto part = integer(node, "split_size");
    return part ? std::optional(count * *part) : std::nullopt;
  }
  const Argument* parts = argument(node, "split_sizes");
  if (parts == nullptr || result > parts->list.size()) return std::nullopt;
  Size before;
  for (size_t i = 0; i < result; ++i) {
    if (parts->list[i].kind != Argument::Kind::kInteger) return std::nullopt;
    before = before + parts->list[i].integer;
  }
  return before;
}

std::optional<Size> split(const Graph& graph, const Node& node, size_t result) {
  const TensorType& type = graph.values[node.views].type;
  const auto dim = dimension(node, "dim", type.sizes.size());
  const auto before = places_before(node, result);
  if (!dim || !before) return std::nullopt;
  return *before * type.strides[*dim];
}

// Counts from the first element of the storage, which only what a node has made is known to begin
// at.
std::optional<Size> strided(const Graph& graph, const Node& node) {
  const Argument* start = argument(node, "storage_offset");
  if (start == nullptr || start->kind == Argument::Kind::kNone) return Size();
  const NodeId maker = graph.values[node.views].node;
  const bool made = maker != kNone && graph.nodes[maker].views == kNone;
  return made ? integer(node, "storage_offset") : std::nullopt;
}

// Of a diagonal above or below the main one.
std::optional<Size> beside_main(const Graph& graph, const Node& node) {
  const TensorType& type = graph.values[node.views].type;
  const auto offset = integer(node, "offset");
  const bool below = offset && offset->is_constant() && offset->constant_part() < 0;
  const auto dim = dimension(node, below ? "dim1" : "dim2", type.sizes.size());
  if (!dim || !offset || !offset->is_constant()) return std::nullopt;
  return (below ? *offset * Size(-1) : *offset) * type.strides[*dim];
}

}  // namespace

std::optional<Size> view_offset(const Graph& graph, const Node& node, size_t result) {
  if (node.views == kNone) return Size();
  if (!node.writes.empty()) return Size();  // in place: the operand itself
  if (node.op->cls != OpClass::kView) return std::nullopt;
  switch (node.op->id) {
    case kAsStrided:
      return strided(graph, node);
    case kSelect:
      return along(graph, node, "index");
    case kSlice:
      return along(graph, node, "start");
    case kDiagonal:
      return beside_main(graph, node);
    case kSplit:
    case kSplitWithSizes:
    case kUnbind:
      return split(graph, node, result);
    default:
      return Size();
  }
}

bool reshapes(const Node& node) { return node.is(kView, kUnsafeView, kReshape); }

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
