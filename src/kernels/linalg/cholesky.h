// src/kernels/linalg/cholesky.h: Cholesky factorisation.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Replaces the lower triangle of each matrix by L with L L^H equal to the Hermitian matrix that the
// triangle stands for; what lies above the diagonal is neither read nor written. For the upper
// factor pass the transposed view. matrices are [batch, n, n]
// (matrix_batch.h). info, contiguous int32 [batch], is 0, or k + 1 where the leading block of order
// k + 1 is the first that is not positive definite; the factor then stops before column k. Throws
// Error INVALID_ARGUMENT, or UNSUPPORTED for other dtypes. Outer-product form: Golub & Van Loan,
// Matrix Computations, 4th ed., section 4.2.6.
GRAFT_EXPORT void cholesky_factor(Stream& stream, const TensorView& matrices,
                                  const TensorView& info);

}  // namespace graft
