// src/kernels/weight_only/dequantize.h: the numbers that a weight of small integers stands for.
#pragma once

#include "kernels/weight_only/weight.h"
#include "runtime/stream/stream.h"

namespace graft {

// to [rows, k] (floating, dense) = rows first .. first + rows - 1 of a weight [n, k], rounded to
// to's dtype once.
//   int8: weight of any strides; (integer - zero) * scale.
//   int32: packed as packed_int4.h says, first and rows multiples of 8; (integer - 8) * scale +
//   zero.
// REQUIRES: to has elements.
void dequantize(Stream& stream, const TensorView& to, const TensorView& weight,
                const WeightScales& scales, int64_t first);

}  // namespace graft
