// src/compiler/analysis/reduction.h: a reduction along the last dimensions, as kernels compute it.
#pragma once

#include <cstdint>

#include "compiler/graph/graph.h"

namespace graft::compiler {

enum class Fold : uint8_t { kSum, kMean, kMax, kMin };

struct LastReduction {
  Fold fold = Fold::kSum;
  ValueId input = kNone;
  size_t dims = 0;     // how many of the last dimensions
  bool keeps = false;  // they stay, with size 1
};

// What a node of class kReduction computes. False for reductions along other dimensions, of or to
// integers, or with arguments that are not known here.
bool last_reduction(const Graph& graph, const Node& node, LastReduction* out);

}  // namespace graft::compiler
