// src/kernels/resample/kernel.h: the kernels behind resample.h, one map along one dimension.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

// Tensors are [outer, length, inner] without gaps. Parameters in order: output; input; positions
// (int32 planes), weights where weighted, counts (int32) where many; then as int64: lines, lines
// per item, output's length, input's length, inner, blocks of a line, and fixed's bits.
struct ResampleKernel {
  static constexpr int64_t kMostUnrolled = 8;  // taps; more are a loop
  static constexpr int64_t kBlock = 256;       // elements of a line

  bool rows = false;      // a line is a block of inner elements, else a block of output's length
  int taps = 1;           // of each element; 0: as many as counts says
  bool padded = false;    // some elements have fewer
  bool weighted = false;  // else every weight is 1
  bool fixed = false;     // whole numbers: weights times 2 to some bits
  graft_dtype to = GRAFT_FLOAT32, from = GRAFT_FLOAT32;
  graft_dtype sum = GRAFT_FLOAT32;  // of weights and sums; raw moves have to = from = sum

  std::string key() const;
  ir::Kernel build() const;
};

}  // namespace graft
