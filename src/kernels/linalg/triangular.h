// src/kernels/linalg/triangular.h: the upper or lower triangle of matrices.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// output = input on and above (upper) or on and below (lower) the diagonal that lies `diagonal`
// columns to the right of the main one, 0 elsewhere, in the last two dimensions. Sizes and dtypes
// equal, any strides; output may be input itself.
GRAFT_EXPORT void triangular(Stream& stream, const TensorView& output, const TensorView& input,
                             int64_t diagonal, bool upper);

}  // namespace graft
