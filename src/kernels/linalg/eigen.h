// src/kernels/linalg/eigen.h: eigenvalues and eigenvectors of symmetric and Hermitian matrices.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Cyclic Jacobi rotations, one work-item per matrix: a few sweeps of n^2 / 2 rotations each. Errors
// are a small multiple of the matrix's norm times epsilon, vectors are orthonormal to as much.
// Golub & Van Loan, Matrix Computations, 4th ed., section 8.5; Demmel & Veselic, "Jacobi's Method
// is More Accurate than QR", SIAM Journal on Matrix Analysis and Applications 13 (1992).

// matrices: batches as in matrix_batch.h, square, of which only the upper or the lower triangle is
// read, and which are overwritten. values: contiguous [batch, n], real, ascending. vectors: one for
// each value in the columns of [batch, n, n], or null. info, contiguous int32 [batch], is 0, or
// above it where n > 1 and the matrix holds NaN or did not converge. Infinities give NaN.
GRAFT_EXPORT void symmetric_eigen(Stream& stream, const TensorView& values,
                                  const TensorView* vectors, const TensorView& matrices,
                                  const TensorView& info, bool upper);

}  // namespace graft
