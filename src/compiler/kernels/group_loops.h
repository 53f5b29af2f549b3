// src/compiler/kernels/group_loops.h: the loops of a generated kernel and its tensors' strides
// along them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/grouping/fusion.h"
#include "kernels/launch/loop_nest.h"
#include "kernels/tensor/axes.h"

namespace graft::compiler {

// A tensor that a group reads or writes.
struct GroupTensor {
  ValueId value = kNone;
  bool written = false;
  std::vector<Size> strides;   // by loop, in elements; 0 where it is broadcast
  NodeId reversed_by = kNone;  // the node that reads it backwards; its strides say so
};

// Loops from the outermost to the innermost, dimensions joined where every tensor allows it. With
// reductions the innermost loop is the one that they run along.
struct GroupLoops {
  std::vector<Size> sizes;  // at least one
  bool reduces = false;
  std::vector<GroupTensor> tensors;  // written ones first

  size_t inner() const { return sizes.size() - 1; }

  // As kernels have them: with sizes for symbols, and what is known without.
  Axes axes(const std::function<int64_t(const Size&)>& at) const;
  NestShape shape(WorkMapping deal) const;
};

// The loops of a group's nodes; none where the reduced dimensions are not one loop for all tensors,
// or the nodes do not go together. Constants of one element and scalars of the host are no tensors.
std::optional<GroupLoops> group_loops(const Graph& graph, const Effects& effects,
                                      const std::vector<NodeId>& nodes);

// Whether a group reads a value as a number and not from memory.
bool is_number(const GraphValue& value);

// The domain of all nodes together, as fusion joined it.
std::optional<Loops> domain_of(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace graft::compiler
