// src/kernels/tensor/axes.cpp: the loops over the elements of several tensors of one shape.
#include "kernels/tensor/axes.h"

#include <algorithm>
#include <utility>

#include "runtime/driver/dtype.h"

namespace graft {

Axes Axes::of(std::span<const TensorView* const> views) {
  Axes axes;
  axes.operands = static_cast<int>(views.size());
  const TensorView& last = *views.back();
  for (int d = 0; d < last.rank; ++d) {
    if (last.sizes[d] == 1) continue;
    Axis& axis = axes.at[axes.rank++];
    axis.size = last.sizes[d];
    int operand = 0;
    for (const TensorView* view : views) axis.strides[operand++] = view->strides[d];
  }
  return axes;
}

Axes Axes::joined(std::span<const TensorView* const> views) {
  Axes axes = of(views);
  axes.sort(0);
  axes.merge();
  return axes;
}

int64_t Axes::count() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= at[i].size;
  return count;
}

void Axes::sort(int operand) {
  for (int i = 1; i < rank; ++i) {
    for (int k = i; k > 0 && at[k].strides[operand] > at[k - 1].strides[operand]; --k) {
      std::swap(at[k].size, at[k - 1].size);
      std::swap_ranges(at[k].strides, at[k].strides + operands, at[k - 1].strides);
    }
  }
}

void Axes::merge() {
  if (rank == 0) return;
  int last = 0;
  for (int i = 1; i < rank; ++i) {
    Axis& outer = at[last];
    const Axis& inner = at[i];
    bool joins = true;
    for (int k = 0; k < operands; ++k) {
      joins = joins && outer.strides[k] == inner.size * inner.strides[k];
    }
    if (!joins) {
      if (++last != i) at[last] = inner;
      continue;
    }
    outer.size *= inner.size;
    std::copy(inner.strides, inner.strides + operands, outer.strides);
  }
  rank = last + 1;
}

TensorView Axes::view(int operand, graft_address address, graft_dtype dtype) const {
  TensorView view{};
  view.address = address;
  view.dtype = dtype;
  view.rank = rank;
  for (int i = 0; i < rank; ++i) {
    view.sizes[i] = at[i].size;
    view.strides[i] = at[i].strides[operand];
  }
  return view;
}

TensorView contiguous_like(const TensorView& view, graft_address address, graft_dtype dtype) {
  TensorView result = view;
  result.address = address;
  result.dtype = dtype;
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    result.strides[d] = stride;
    stride *= std::max<int64_t>(view.sizes[d], 1);
  }
  return result;
}

uint64_t extent_bytes(const TensorView& view) {
  int64_t last = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.sizes[d] == 0) return 0;
    last += (view.sizes[d] - 1) * view.strides[d];
  }
  return static_cast<uint64_t>(last + 1) * size_of(view.dtype);
}

}  // namespace graft
