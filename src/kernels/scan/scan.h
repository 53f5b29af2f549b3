// src/kernels/scan/scan.h: cumulative sums and products along one dimension.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// output[j] = input[0] + ... + input[j] along dim, each line from front to back in float64 (int64
// for integers), as torch's CPU does, converted to output's dtype. Same sizes, any strides, rank 0
// allowed; output may be input itself.
GRAFT_EXPORT void cumulative_sum(Stream& stream, const TensorView& output, const TensorView& input,
                                 int dim);
// The same with products.
GRAFT_EXPORT void cumulative_product(Stream& stream, const TensorView& output,
                                     const TensorView& input, int dim);

}  // namespace graft
