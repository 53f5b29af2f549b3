// src/kernels/tensor/image_views.cpp: batches of images seen as matrices.
#include "kernels/tensor/image_views.h"

#include <algorithm>

#include "runtime/driver/dtype.h"

namespace graft {

TensorView matrices(const TensorView& view, int64_t batch, int64_t rows, int64_t columns) {
  TensorView result = view;
  result.rank = 3;
  const int64_t sizes[3] = {batch, rows, columns};
  std::copy(sizes, sizes + 3, result.sizes);
  return result;
}

TensorView part(const TensorView& view, int dimension, int64_t first, int64_t count) {
  TensorView result = view;
  result.sizes[dimension] = count;
  result.address += static_cast<uint64_t>(first * view.strides[dimension]) * size_of(view.dtype);
  return result;
}

void make_contiguous(TensorView& view) {
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.strides[d] = stride;
    stride *= view.sizes[d];
  }
}

bool is_contiguous_from(const TensorView& view, int first) {
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= first; --d) {
    if (view.sizes[d] > 1 && view.strides[d] != stride) return false;
    stride *= view.sizes[d];
  }
  return true;
}

std::optional<TensorView> as_matrix(const TensorView& view) {
  int64_t count = 1, step = view.strides[1];
  const auto join = [&](int d) {
    if (view.sizes[d] == 1) return true;
    if (count == 1) step = view.strides[d];
    const bool fits = view.strides[d] == step * count;
    count *= view.sizes[d];
    return fits;
  };
  for (int d = view.rank - 1; d >= 2; --d) {
    if (!join(d)) return std::nullopt;
  }
  if (!join(0)) return std::nullopt;
  TensorView result = view;
  result.rank = 2;
  result.sizes[0] = count, result.strides[0] = step;
  return result;
}

}  // namespace graft
