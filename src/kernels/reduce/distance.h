// src/kernels/reduce/distance.h: distances between rows in the p-norm, and their gradients.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// All views are contiguous and of one dtype, float32 or float64. p >= 0: 0 counts the components
// that differ, infinity takes the largest difference.

// output [batch, n, k] = |a[., i, :] - b[., j, :]|, a [batch, n, m], b [batch, k, m].
GRAFT_EXPORT void cross_distances(Stream& stream, const TensorView& output, const TensorView& a,
                                  const TensorView& b, double p);

// output [n (n - 1) / 2]: the distances of the rows i < j of a [n, m], by i, then by j.
GRAFT_EXPORT void pair_distances(Stream& stream, const TensorView& output, const TensorView& a,
                                 double p);

// slopes [batch, n, m] = the gradient by a of the sum of grad * distances, both [batch, n, k].
// Rows that are equal give 0.
GRAFT_EXPORT void cross_distances_backward(Stream& stream, const TensorView& slopes,
                                           const TensorView& grad, const TensorView& a,
                                           const TensorView& b, const TensorView& distances,
                                           double p);

// The same for pair_distances; grad and distances are [n (n - 1) / 2], slopes is [n, m].
GRAFT_EXPORT void pair_distances_backward(Stream& stream, const TensorView& slopes,
                                          const TensorView& grad, const TensorView& a,
                                          const TensorView& distances, double p);

}  // namespace graft
