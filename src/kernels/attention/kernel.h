// src/kernels/attention/kernel.h: the kernel that makes weights of a block of scores.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

// softmax over rows, in place. Arguments: scores [lines, columns], logsumexp, bias where there is
// one; lines, lines per item, rows per head, columns, first row (-1: not causal), stride of
// logsumexp along the heads, strides of the bias along heads, rows and columns.
struct AttentionKernel {
  graft_dtype dtype = GRAFT_FLOAT32;
  bool biased = false;
  graft_dtype bias = GRAFT_FLOAT32;

  std::string key() const;
  ir::Kernel build() const;
};

}  // namespace graft
