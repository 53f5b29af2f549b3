// src/kernels/weight_only/packed_int4.h: weights of 4 bits, as the products read them.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// The layout of a packed weight [n, k], n and k multiples of 8: words of 32 bits [n / 8, k / 8, 8],
// without gaps. Word (p, q, i) holds the integers 8 q to 8 q + 7 of row 8 p + i, the first in its
// low bits.

// packed (int32, n k / 8 elements without gaps) = the integers of pairs (uint8 [n, k / 2], any
// strides), each byte of which holds two neighbours, the first in its high bits, as PyTorch's
// _convert_weight_to_int4pack has them. Throws Error INVALID_ARGUMENT on other shapes or dtypes.
GRAFT_EXPORT void pack_int4(Stream& stream, const TensorView& packed, const TensorView& pairs);

}  // namespace graft
