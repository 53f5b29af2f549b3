// src/kernels/norm/softmax_kernel.h: the kernels behind softmax.h, for contiguous tensors.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "kernels/launch/lanes.h"

namespace graft {

// A softmax kernel: over the last dimension of [lines, n] or the middle one of [outer, n, inner].
// Dealt out to lanes, a group takes a line (line_loop.h), or a work-item a column.
struct SoftmaxKernel {
  bool columns = false;
  bool log = false;
  bool backward = false;
  graft_dtype dtype = GRAFT_FLOAT32;
  bool brief = false;  // lines of at most kBriefLine elements: fewer accumulators
  WorkMapping deal = WorkMapping::kSpans;

  int64_t width() const;  // columns of a block

  std::string key() const;
  // Parameters: output; input (backward: gradient, result of the forward pass); lines, items per
  // line, n; for columns also inner. A line of the column form is a block of width() columns.
  ir::Kernel build() const;
};

inline constexpr int64_t kBriefLine = 48;

}  // namespace graft
