// src/kernels/weight_only/product.h: products with weights of 8 and 4 bits.
#pragma once

#include "kernels/weight_only/weight.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Each: output [m, n] = a [m, k] times the transpose of a weight [n, k]. One floating dtype, any
// strides; sums in float32, of float64 in float64. Vendors are asked first. Up to kDecodedRows of a
// meet the weight as it lies, within the bounds of the README; for more, blocks of it are rounded
// to a's dtype for matmul(). Throws Error INVALID_ARGUMENT on what does not fit.

// weight: int8 [n, k], any strides; its numbers are (integer - zero) * scale. Groups: one a row, or
// any that divide k.
GRAFT_EXPORT void int8_weight_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                                     const TensorView& weight, const WeightScales& scales);

// packed: int32, n k / 8 elements without gaps, laid out as packed_int4.h says; its numbers are
// (integer - 8) * scale + zero. Groups: whole words, that is multiples of 8, which divide k.
GRAFT_EXPORT void int4_weight_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                                     const TensorView& packed, const WeightScales& scales);

inline constexpr int64_t kDecodedRows = 64;
inline constexpr int64_t kDequantizedBytes = int64_t{32} << 20;  // of a block's numbers, at most

}  // namespace graft
