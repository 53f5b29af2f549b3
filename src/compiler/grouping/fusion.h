// src/compiler/grouping/fusion.h: which nodes one kernel may compute together.
#pragma once

#include <optional>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

// The iteration of a generated kernel: over all of domain; the last reduced dimensions are those
// that its reductions run along, 0 for an elementwise kernel.
struct Loops {
  std::vector<Size> domain;
  size_t reduced = 0;
};

// A node whose result has its input's elements in reverse order along some dimensions.
struct Reversal {
  ValueId input = kNone;
  std::vector<bool> dims;  // by dimension
};

// None for every other node.
std::optional<Reversal> reversal(const Graph& graph, const Node& node);

// The loops of one node that computes each element from those at the same place, or reduces; none
// for others.
std::optional<Loops> loops_of(const Graph& graph, const Node& node);

// The same, and those of a node that reverses elements (above), which a group reads from
// outside; none for a node that no generated kernel computes.
std::optional<Loops> group_loops_of(const Graph& graph, const Node& node);

// The loops in which nodes with either are computed; none when they do not go together. What is one
// value per row (its last sizes are 1) goes with a reduction over these rows.
std::optional<Loops> joined(const Loops& a, const Loops& b);

// What a group reads from outside and gives to outside, once each, in the order of use.
struct GroupEdges {
  std::vector<ValueId> inputs, outputs;
};
// Takes time by the nodes' operands, not by the graph. REQUIRES: effects are the graph's.
GroupEdges edges_of(const Graph& graph, const Effects& effects, const std::vector<NodeId>& nodes);

// A kernel has at most so many nodes and tensors.
inline constexpr size_t kMaxGroupNodes = 64;
inline constexpr size_t kMaxGroupTensors = 12;

}  // namespace graft::compiler
