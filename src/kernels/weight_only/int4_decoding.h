// src/kernels/weight_only/int4_decoding.h: a few rows times a weight of 4 bits, each byte read
// once.
#pragma once

#include "kernels/weight_only/weight.h"
#include "runtime/stream/stream.h"

namespace graft {

// output [m, n] = a [m, k] times the transpose of the weight [n, k] that is packed as packed_int4.h
// says: (integer - 8) * scale + zero. REQUIRES: m from 1 to kMostRows; n and k not 0; groups of
// whole words; floating scales and zeros of one dtype.
void int4_decoding(Stream& stream, const TensorView& output, const TensorView& a,
                   const TensorView& packed, const WeightScales& scales);

}  // namespace graft
