// src/kernels/weight_only/int8_decoding.h: a few rows times a weight of int8, each byte read once.
#pragma once

#include "kernels/weight_only/weight.h"
#include "runtime/stream/stream.h"

namespace graft {

// output [m, n] = a [m, k] times the transpose of weight [n, k]. REQUIRES: fits_int8_decoding(); m
// from 1 to kMostRows; n and k not 0.
void int8_decoding(Stream& stream, const TensorView& output, const TensorView& a,
                   const TensorView& weight, const WeightScales& scales);

// Whether the weight is read in words: dense rows of whole words, groups of whole blocks of 32
// integers or one a row.
bool fits_int8_decoding(const TensorView& weight, const WeightScales& scales);

}  // namespace graft
