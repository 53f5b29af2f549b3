// src/kernels/linalg/lu.h: LU factorisation with partial pivoting, and its row exchanges.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Batches of matrices, see matrix_batch.h; others throw Error INVALID_ARGUMENT, or
// UNSUPPORTED for the dtype. pivots are contiguous int32 [batch, min(rows, columns)]: row i was
// exchanged with row pivots[i] - 1, in order; error_record.h reports those that are no row.

// P A = L U in place: U on and above the diagonal, L without its unit diagonal below. info,
// contiguous int32 [batch], is 0, or k + 1 where U[k, k] is the first pivot that is exactly 0.
// Golub & Van Loan, Matrix Computations, 4th ed., algorithm 3.4.1.
GRAFT_EXPORT void lu_factor(Stream& stream, const TensorView& matrices, const TensorView& pivots,
                            const TensorView& info);

// Exchanges the rows of each matrix as pivots says; backward undoes it.
GRAFT_EXPORT void exchange_rows(Stream& stream, const TensorView& matrices,
                                const TensorView& pivots, bool backward);

// permutation, contiguous int64 [batch, rows]: which row of A is row i of P A.
GRAFT_EXPORT void permutation_of_pivots(Stream& stream, const TensorView& permutation,
                                        const TensorView& pivots);

}  // namespace graft
