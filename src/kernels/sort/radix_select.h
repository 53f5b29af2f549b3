// src/kernels/sort/radix_select.h: picks from long rows without sorting them.
#pragma once

#include "kernels/sort/sort.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// As pick(), on contiguous rows of n elements, with many work-items on one row, row after row.
// REQUIRES: which is not kMode.
void pick_from_long_rows(Stream& stream, Pick which, const TensorView& values,
                         const TensorView& indices, const TensorView& input, int64_t n,
                         int64_t nth);

}  // namespace graft
