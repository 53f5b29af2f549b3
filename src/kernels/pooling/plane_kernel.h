// src/kernels/pooling/plane_kernel.h: the kernels behind pooling.h for contiguous planes.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

// One kernel on written tensors that are contiguous as [n, c, h, w]. Lanes are neighbouring written
// elements, over the ends of rows and planes, so that narrow images run in whole vectors.
struct PlanePoolKernel {
  enum Kind {
    kMax,              // output, indices; input
    kAverage,          // output; input
    kAverageBackward,  // grad_input; gradient
    kAdaptive,         // as kAverage; the argument kernel is the longest window
    kAdaptiveBackward,
    kMaxBackward,  // grad_input; gradient, indices, both contiguous. Scatters plane by plane
  };

  Kind kind = kMax;
  graft_dtype dtype = GRAFT_FLOAT32;    // of what is read; no half type but for kMaxBackward
  graft_dtype written = GRAFT_FLOAT32;  // of the output, or of kMaxBackward's sums
  bool clipped = false;  // some windows reach over the edge; backward: divisors differ

  std::string key() const;
  ir::Kernel build() const;
};

// Kernels divide in float32 and add positions in int32: exact while sides and the rows of an item
// are below the first limit and an item's planes within the second one, in elements.
inline constexpr int64_t kPlaneSide = int64_t{1} << 20;
inline constexpr int64_t kPlaneReach = int64_t{1} << 30;

}  // namespace graft
