// src/kernels/linalg/triangular_solve.h: systems of equations with triangular matrices.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Replaces each matrix B of right by X with A X = B, where A is the upper or the lower triangle of
// a matrix of left; unit: with a diagonal of ones; conjugate: of its elementwise conjugate. The
// other elements are never read. left is
// [batch, n, n], right [batch, n, columns], of one dtype (matrix_batch.h); they
// share no memory. A zero on the diagonal gives infinities and NaN. Throws Error INVALID_ARGUMENT,
// or UNSUPPORTED for other dtypes. One work-item solves for one column: by columns of A where rows
// are dense (Golub & Van Loan, Matrix Computations, 4th ed., algorithms 3.1.3 and 3.1.4), else by
// rows (3.1.1 and 3.1.2).
GRAFT_EXPORT void triangular_solve(Stream& stream, const TensorView& right, const TensorView& left,
                                   bool upper, bool unit, bool conjugate = false);

}  // namespace graft
