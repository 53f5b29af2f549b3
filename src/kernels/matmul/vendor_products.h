// src/kernels/matmul/vendor_products.h: products that vendors may have kernels for beside matmul's.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Whether the vendor has a kernel at all, before a result is allocated. Two loads where it has
// none.
GRAFT_EXPORT bool knows_grouped_matmul(Stream& stream);

// Each queues the vendor's kernel. False, and nothing is done, if the vendor does not take the
// call: the caller composes it of other products then. Throws Error where the vendor fails.

// Products of groups, as torch.nn.functional.grouped_mm: output [m, n] of a [m, k] and b [g, k, n],
// output [m, n] of a [g, m, k] and b [k, n], output [g, m, n] of a [m, k] and b [k, n], or of a
// [g, m, k] and b [g, k, n]. offsets (int32 [g]; null for the last form): where each group ends, in
// the rows of a, the columns of b or the sums. One floating dtype, any strides.
GRAFT_EXPORT bool grouped_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                                 const TensorView& b, const TensorView* offsets);

}  // namespace graft
