// src/kernels/tensor/axes.h: the loops over the elements of several tensors of one shape.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "kernels/tensor/view.h"

namespace graft {

inline constexpr int kMaxOperands = 8;
inline constexpr int kMaxStrides = 12;  // the same of a compiled group

// A loop of size steps; strides (elements) say how far each operand moves in one step.
struct Axis {
  int64_t size = 1;
  int64_t strides[kMaxStrides] = {};
};

// Nested loops, outermost first.
struct Axes {
  int operands = 1;
  int rank = 0;
  union {
    Axis at[kMaxRank];  // beyond rank and, where of() made them, operands: not set
  };

  Axes() {}

  // The dimensions of the views in order; sizes come from the last of them. Sizes of 1 are left
  // out. REQUIRES: 1 to kMaxStrides views of one rank.
  static Axes of(std::span<const TensorView* const> views);
  static Axes of(std::initializer_list<const TensorView*> views) {
    return of(std::span(views.begin(), views.size()));
  }

  void push(const Axis& axis) { at[rank++] = axis; }
  // The same in the order of the first view's memory, neighbours joined: for work in which order is
  // free.
  static Axes joined(std::span<const TensorView* const> views);

  std::span<const Axis> span() const { return {at, static_cast<size_t>(rank)}; }
  int64_t count() const;

  // Puts long strides of the given operand outside. Only for work in which order is free.
  void sort(int operand);
  // Joins neighbouring loops that every operand walks as one. The order of elements stays.
  void merge();
  // The view of operand's elements in the order of these loops.
  TensorView view(int operand, graft_address address, graft_dtype dtype) const;
};

// A view of the same sizes that is contiguous in row-major order, at another address.
TensorView contiguous_like(const TensorView& view, graft_address address, graft_dtype dtype);

// Bytes from the view's first element to the end of its last one; 0 when it has no element.
// REQUIRES: strides are not negative.
uint64_t extent_bytes(const TensorView& view);

}  // namespace graft
