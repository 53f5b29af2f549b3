// src/kernels/norm/layer_norm_kernel.h: the kernels behind layer normalisation.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "kernels/launch/lanes.h"

namespace graft {

// One kernel; the order of its parameters is the order of the arguments in layer_norm.cpp. Dealt
// out to lanes, a group takes a row (line_loop.h), or a work-item a column of a chunk.
struct LayerNormKernel {
  enum Step { kForward, kInput, kParameters } step = kForward;
  bool weight = false;
  bool bias = false;
  graft_dtype dtype = GRAFT_FLOAT32;      // of the rows
  graft_dtype parameter = GRAFT_FLOAT32;  // of weight and bias
  graft_dtype wide = GRAFT_FLOAT32;       // of mean and rstd
  WorkMapping deal = WorkMapping::kSpans;

  std::string key() const;
  ir::Kernel build() const;
};

}  // namespace graft
