// src/kernels/tensor/line_view.h: a view as lines along one dimension.
#pragma once

#include <algorithm>

#include "kernels/tensor/view.h"

namespace graft {

// The same elements with dim moved behind the others, so that a contiguous copy has its lines one
// after the other. Rank 0 becomes rank 1.
inline TensorView with_lines_last(const TensorView& view, int dim) {
  TensorView moved = view;
  if (view.rank == 0) {
    moved.rank = 1;
    moved.sizes[0] = moved.strides[0] = 1;
    return moved;
  }
  std::rotate(moved.sizes + dim, moved.sizes + dim + 1, moved.sizes + moved.rank);
  std::rotate(moved.strides + dim, moved.strides + dim + 1, moved.strides + moved.rank);
  return moved;
}

// Whether writing one view could change what is read from the other.
inline bool may_overlap(const TensorView& a, uint64_t a_bytes, const TensorView& b,
                        uint64_t b_bytes) {
  return a.address < b.address + b_bytes && b.address < a.address + a_bytes;
}

}  // namespace graft
