// src/kernels/matmul/tile_launch.h: launches of kernels whose groups hold tiles of a product.
#pragma once

#include "kernels/launch/arguments.h"
#include "kernels/matmul/tile_shape.h"
#include "runtime/driver/dtype.h"

namespace graft {

// Of a product of m x n sums.
inline int64_t tiles_of(const TileShape& shape, int64_t m, int64_t n) {
  return ((m + shape.rows - 1) / shape.rows) * ((n + shape.columns - 1) / shape.columns);
}

// What a product's factors alpha and beta travel as: float64 only where the product needs it, since
// many GPUs lack it.
inline graft_dtype scale_dtype(graft_dtype dtype) {
  return is_half(dtype) || dtype == GRAFT_FLOAT32 ? GRAFT_FLOAT32 : GRAFT_FLOAT64;
}
inline void append_scale(Arguments& arguments, graft_dtype dtype, double value) {
  if (scale_dtype(dtype) == GRAFT_FLOAT64) {
    arguments.scalar(Scalar::of(value), sizeof(double));
  } else {
    arguments.scalar(Scalar::of(static_cast<float>(value)), sizeof(float));
  }
}

}  // namespace graft
