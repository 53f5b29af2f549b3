// src/kernels/matmul/matmul.h: matrix products, through the driver's library or a generated kernel.
#pragma once

#include "graft/extensions.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// What is added to a product. addend is broadcast to output's sizes by strides of 0.
struct MatmulEpilogue {
  double alpha = 1.0;
  double beta = 0.0;                   // 0: addend is not read, NaN in it do not spread
  const TensorView* addend = nullptr;  // may be output itself
  bool relu = false;
};

// output = alpha * a b + beta * addend. Rank 2 (a [m, k], b [k, n], output [m, n]) or rank 3 with a
// leading batch of equal size (or stride 0). Any strides, one dtype for all; sums are taken in
// float32 for the half types, integers wrap. k = 0 gives beta * addend. Small integers: output and
// addend int32, a of uint8, int8 or int16, b of int8 or int16.
// Uses the driver's graft.blas where it supports the case (plans are kept, see plan_cache.h), a
// kernel of our own otherwise. Workspaces come from the device's allocator.
GRAFT_EXPORT void matmul(Stream& stream, const TensorView& output, const TensorView& a,
                         const TensorView& b, const MatmulEpilogue& epilogue = {});

// Whether a library takes a factor as it lies: one stride of a matrix is 1, the other spans its
// lines.
bool plain_matrix(const TensorView& view);

// The call of a library, without epilogues.
graft_matmul describe_matmul(const TensorView& output, const TensorView& a, const TensorView& b);

// Throws Error INVALID_ARGUMENT unless the shapes and the dtypes are matmul()'s.
void check_matmul(const TensorView& output, const TensorView& a, const TensorView& b);

}  // namespace graft
