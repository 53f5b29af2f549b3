// src/kernels/scan/cumulative_extremum.h: the extremum, or the logarithm of the sum of
// exponentials, so far.
#pragma once

#include "kernels/reduce/reduce.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// values[..., j, ...] = the extremum of input's line along dim up to and with j; indices (int64) is
// its last position so far. NaN wins over everything. Same sizes, any strides, rank 0 allowed; real
// dtypes, others throw Error UNSUPPORTED.
GRAFT_EXPORT void running_extremum(Stream& stream, Extremum extremum, const TensorView& values,
                                   const TensorView& indices, const TensorView& input, int dim);

// output[..., j, ...] = log(exp(input[0]) + ... + exp(input[j])) along dim, without overflow, in
// float64. Same sizes and floating or complex dtypes, others throw Error UNSUPPORTED.
GRAFT_EXPORT void running_log_sum_exp(Stream& stream, const TensorView& output,
                                      const TensorView& input, int dim);

}  // namespace graft
