// src/kernels/attention/row_attention.h: attention of a few rows on CPU-like devices: decoding.
#pragma once

#include "kernels/attention/attention.h"

namespace graft {

// Most rows that are taken one by one; more are blocks of matrix products.
inline constexpr int64_t kFewRows = 4;

// attention() by one kernel that reads each key and value once for a row and makes numbers of them
// in registers: of a half type, a few rows, without dropout, where the elements of a key and of a
// value are side by side and multiples of 16, of a value at most 256. It reads no key and no value
// before the first and after the last one that the bias leaves in. False where it does not take the
// call, or the device is not CPU-like.
bool row_attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                   const Attention& call);

}  // namespace graft
