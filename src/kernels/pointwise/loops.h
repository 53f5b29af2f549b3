// src/kernels/pointwise/loops.h: the loops over the elements of a kernel's operands.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/pointwise/kernel.h"
#include "kernels/tensor/view.h"

namespace graft {

// Nested loops over views of one shape, innermost first: sizes of 1 left out, sorted so that the
// first view's strides grow outwards, neighbours that every view walks as one joined.
struct PointwiseLoops {
  int rank = 0;
  bool empty = false;  // a size is 0
  int64_t sizes[kMaxRank];
  int64_t strides[PointwiseSpec::kMaxOperands][kMaxRank];

  // REQUIRES: at most kMaxOperands views, all of views[0]'s rank and sizes.
  explicit PointwiseLoops(std::span<const TensorView* const> views);

  // Elements from the lowest to the highest one that view v walks, over the inner loops, and those
  // of them that lie before the first one: 0 but for a view with negative strides.
  int64_t extent(int v, int loops) const;
  int64_t before(int v, int loops) const;

 private:
  void join(int views);
};

}  // namespace graft
