// src/kernels/pointwise/loops.cpp: the loops over the elements of a kernel's operands.
#include "kernels/pointwise/loops.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace graft {

PointwiseLoops::PointwiseLoops(std::span<const TensorView* const> views) {
  const TensorView& shape = *views[0];
  const int count = static_cast<int>(views.size());
  for (int d = shape.rank - 1; d >= 0; --d) {
    if (shape.sizes[d] == 1) continue;
    empty = empty || shape.sizes[d] == 0;
    sizes[rank] = shape.sizes[d];
    for (int v = 0; v < count; ++v) strides[v][rank] = views[v]->strides[d];
    // Insertion keeps the loops sorted; equal strides keep their order.
    for (int k = rank; k > 0 && strides[0][k] < strides[0][k - 1]; --k) {
      std::swap(sizes[k], sizes[k - 1]);
      for (int v = 0; v < count; ++v) std::swap(strides[v][k], strides[v][k - 1]);
    }
    ++rank;
  }
  join(count);
}

void PointwiseLoops::join(int views) {
  int last = 0;
  for (int k = 1; k < rank; ++k) {
    bool joins = true;
    for (int v = 0; v < views && joins; ++v) {
      joins = strides[v][k] == strides[v][last] * sizes[last];
    }
    if (joins) {
      sizes[last] *= sizes[k];
      continue;
    }
    ++last;
    sizes[last] = sizes[k];
    for (int v = 0; v < views; ++v) strides[v][last] = strides[v][k];
  }
  if (rank > 0) rank = last + 1;
}

int64_t PointwiseLoops::extent(int v, int loops) const {
  int64_t last = 0;
  for (int k = 0; k < loops; ++k) last += (sizes[k] - 1) * std::abs(strides[v][k]);
  return last + 1;
}

int64_t PointwiseLoops::before(int v, int loops) const {
  int64_t count = 0;
  for (int k = 0; k < loops; ++k) count -= (sizes[k] - 1) * std::min<int64_t>(strides[v][k], 0);
  return count;
}

}  // namespace graft
