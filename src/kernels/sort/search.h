// src/kernels/sort/search.h: binary search in sorted rows.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// output[row, j] = how many elements of sorted's row are below values[row, j], or not above it when
// right is set; output is int64 or int32. Contiguous views of one dtype: sorted is [rows, n] or
// [n], one row for all values; values and output are [rows, m]. sorter, where not null, is int64 of
// sorted's sizes: the order in which sorted's rows are sorted. As std::lower_bound and
// std::upper_bound do, a NaN goes to the end. Complex dtypes throw Error UNSUPPORTED.
GRAFT_EXPORT void search_sorted(Stream& stream, const TensorView& output, const TensorView& sorted,
                                const TensorView& values, const TensorView* sorter, bool right);

}  // namespace graft
