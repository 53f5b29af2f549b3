// src/compiler/analysis/views.h: where the elements of a view lie in the memory it shares.
#pragma once

#include <optional>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

// How many elements after its operand's first one the first one of a view's result lies; none when
// the operator is not known or does not say (as_strided that counts from the storage's first one).
std::optional<Size> view_offset(const Graph& graph, const Node& node, size_t result);

// Whether a node shows its operand's elements, in their order, in other sizes.
bool reshapes(const Node& node);

// By value: elements from the root's first to its own first one; none where a view on the way is
// unknown.
std::vector<std::optional<Size>> view_offsets(const Graph& graph, const Effects& effects);

// By value: what its offset counts from, and the offset. That is the root, or an input that is a
// view of another input, whose address only the call tells.
struct ViewPlaces {
  std::vector<ValueId> bases;
  std::vector<std::optional<Size>> offsets;
};
ViewPlaces view_places(const Graph& graph, const Effects& effects);

}  // namespace graft::compiler
