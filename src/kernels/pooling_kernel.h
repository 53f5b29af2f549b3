// src/kernels/pooling_kernel.h: the kernels behind pooling.h that run over channels.
#pragma once

#include <string>

#include "codegen/builder.h"
#include "codegen/ir.h"

namespace graft {

// One kernel. Parameters in order: the written tensors, the read ones, then the sizes and strides
// that pooling.cpp lists in launch().
struct PoolKernel {
  enum Kind {
    kMax,              // output, indices; input. A line: one output pixel, a block of channels
    kMaxBackward,      // grad_input; gradient, indices. A line: an image, a block of channels
    kAverage,          // output; input. As kMax
    kAverageBackward,  // grad_input; gradient. A line: one input pixel, a block of channels
    kAdaptive,
    kAdaptiveBackward,
  } kind = kMax;
  graft_dtype dtype = GRAFT_FLOAT32;    // of what is read
  graft_dtype written = GRAFT_FLOAT32;  // of kMaxBackward's sums; elsewhere as dtype

  std::string key() const;
  ir::Kernel build() const;
};

// The lowest number of the dtype, in its compute type: the result of a window without elements.
ir::Value lowest_of(ir::Builder& b, graft_dtype dtype);

// The index of a window's largest element; 0 for -1, which a window without elements has.
ir::Value place_of_largest(ir::Value index);

// Length of a block; kMaxBackward takes shorter ones, as it has fewer lines.
inline constexpr int64_t kPoolBlock = 64;
inline constexpr int64_t kPoolBackwardBlock = 16;

}  // namespace graft
