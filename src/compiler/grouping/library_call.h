// src/compiler/grouping/library_call.h: a product or convolution with what follows it, as one
// library call.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"
#include "graft/extensions.h"
#include "kernels/convolution/convolution.h"

namespace graft::compiler {

// One step of an epilogue, as graft/extensions.h has it.
struct LibraryEpilogue {
  graft_epilogue_kind kind = GRAFT_EPILOGUE_SCALE;
  double value = 0;
  ValueId operand = kNone;
};

// left and right: the factors, or input and weight. The first own steps belong to the first node
// (addmm's bias and factor, a convolution's bias), the others to the nodes behind it.
struct LibraryCall {
  bool convolves = false;
  ValueId left = kNone, right = kNone, product = kNone, result = kNone;
  std::vector<LibraryEpilogue> epilogue;
  size_t own = 0;
  ConvolutionParameters parameters;
};

// nodes: a product (mm, bmm, addmm, baddbmm) or plain convolution of floats, then a chain in which
// each node uses the one before. None where a descriptor cannot say it: more than
// GRAFT_MAX_EPILOGUES steps, others than a factor or bias (a number or a vector), a residual in the
// result's layout, relu, gelu, silu, and what clamps between 0 and a number. A product of halves
// may be cast to float32 and back on the way: the call rounds at its end alone. REQUIRES: as
// pattern, not as fusion: who else uses the nodes is the caller's business.
std::optional<LibraryCall> library_call(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace graft::compiler
