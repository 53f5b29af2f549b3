// src/kernels/linalg/singular_values.h: singular values of matrices, and the vectors to the right.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// One-sided Jacobi rotations, one work-item per matrix: columns are turned in pairs until all are
// orthogonal, A V = U S. Errors are a small multiple of the largest singular value times epsilon.
// Hestenes, "Inversion of Matrices by Biorthogonalization", SIAM Journal 6 (1958); Golub & Van
// Loan, Matrix Computations, 4th ed., section 8.6.3.

// matrices: batches as in matrix_batch.h with at least as many rows as columns; they become U S up
// to a positive factor for each matrix. values: contiguous [batch, columns], real, descending.
// vectors: V [batch, columns, columns], or null. info, contiguous int32 [batch], is 0, -4 (as
// LAPACK's gesdd) where the matrix holds NaN, or the number of columns where it did not converge.
// Infinities give NaN.
GRAFT_EXPORT void singular_values(Stream& stream, const TensorView& values,
                                  const TensorView* vectors, const TensorView& matrices,
                                  const TensorView& info);

}  // namespace graft
