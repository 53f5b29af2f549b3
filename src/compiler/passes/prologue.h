// src/compiler/passes/prologue.h: what depends on parameters only, as a graph of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// A graph in two parts that together compute it. Results of the prologue stay valid until one of
// its inputs is written: recompute them then, before the next run of main.
struct Prologue {
  // Inputs: those inputs of the graph that it needs. Outputs: tensors, in memory of their own.
  Graph prologue;
  // Inputs: all inputs of the graph, in their order, then the prologue's outputs as buffers.
  Graph main;
  // By the prologue's inputs: which input of the graph each is.
  std::vector<size_t> inputs;
};

// Moves nodes that depend on constants, parameters and buffers alone (folded batch norms, casts and
// copies of weights, masks and ranges) out of an inference graph. What is mutated, aliased, random,
// of symbolic size, or an output stays, and so do views: their users see the moved value through
// them. None where nothing is left to move. The parts have no groups: run grouping_passes() on
// each. REQUIRES: a graph that verify() accepts, as its passes left it.
GRAFT_EXPORT std::optional<Prologue> split_prologue(const Graph& graph);

}  // namespace graft::compiler
