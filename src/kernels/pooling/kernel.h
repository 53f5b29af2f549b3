// src/kernels/pooling/kernel.h: the kernels behind pooling.h that run over channels.
#pragma once

#include <functional>
#include <string>

#include "codegen/ir/builder.h"
#include "codegen/ir/ir.h"
#include "kernels/launch/checked_index.h"

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

// add(i, position, from(i)) for i in [begin, end) with position = index(i), that of a window's
// largest element, within [0, size). For -1, which a window without elements has: position 0 and
// number 0. Reports others.
using PoolAdd = std::function<void(ir::Value i, ir::Value position, ir::Value x)>;
void each_largest(const IndexChecker& checker, ir::Value begin, ir::Value end, ir::Value size,
                  const std::function<ir::Value(ir::Value)>& index,
                  const std::function<ir::Value(ir::Value)>& from, const PoolAdd& add);

// Length of a block; kMaxBackward takes shorter ones, as it has fewer lines.
inline constexpr int64_t kPoolBlock = 64;
inline constexpr int64_t kPoolBackwardBlock = 16;

}  // namespace graft
