// src/kernels/sort/sort.h: sorting lines, and picking from sorted lines.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Stable; NaN above everything, -0 equal to 0. Any layout; complex dtypes throw UNSUPPORTED.

// values[..., j, ...] = the element of input's line along dim that has j before it; indices (int64)
// says where it was. All have the same sizes. values may be input itself.
GRAFT_EXPORT void sort(Stream& stream, const TensorView& values, const TensorView& indices,
                       const TensorView& input, int dim, bool descending);

// The k greatest (or smallest) elements of each line along dim, best first; front ones of equals.
// values and indices (int64) have k positions along dim, at most as many as input has.
GRAFT_EXPORT void top_k(Stream& stream, const TensorView& values, const TensorView& indices,
                        const TensorView& input, int dim, bool largest);

enum class Pick {
  kNth,        // the element with n before it
  kMedian,     // the lower middle one; NaN where the line has any
  kNanMedian,  // the same among those that are no NaN
  kMode        // the most frequent one, the smallest of several; its last position
};

// One element of each line along dim, which is not empty, and where it was: values and indices
// (int64) have size 1 along dim. n: for kNth, counted from 0.
GRAFT_EXPORT void pick(Stream& stream, Pick which, const TensorView& values,
                       const TensorView& indices, const TensorView& input, int dim, int64_t n = 0);

}  // namespace graft
