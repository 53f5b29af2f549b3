// src/kernels/linalg/householder.h: QR factorisation by Householder reflections.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Batches of matrices, see matrix_batch.h; others throw Error INVALID_ARGUMENT, or
// UNSUPPORTED for the dtype. Reflection i is I - factors[i] v v^H, where v is 0 above row i, 1 in
// it, and below it what column i holds there; factors are contiguous [batch, count], count at most
// rows and columns.

// A = Q R in place, as LAPACK's geqrf leaves it: R on and above the diagonal, the reflections whose
// product is Q below, with their factors. Golub & Van Loan, Matrix Computations, 4th ed.,
// algorithms 5.1.1 and 5.2.1.
GRAFT_EXPORT void householder_factor(Stream& stream, const TensorView& matrices,
                                     const TensorView& factors);

// Multiplies each matrix from the left by the product Q of the reflections that lie in the columns
// of reflections, or by its adjoint Q^H; conjugate: by the elementwise conjugate of either. They
// share no memory. Algorithm 5.1.5 of the same book. to_identity: the matrices hold the identity,
// of which a reflection changes the columns from its own on alone; not with adjoint, which throws
// Error INVALID_ARGUMENT.
GRAFT_EXPORT void apply_reflections(Stream& stream, const TensorView& matrices,
                                    const TensorView& reflections, const TensorView& factors,
                                    bool adjoint, bool conjugate = false, bool to_identity = false);

}  // namespace graft
