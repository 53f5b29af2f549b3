// src/kernels/convolution/grouped_convolution.h: the sums over patches taken directly, for channels
// in small groups.
#pragma once

#include "kernels/convolution/patch_geometry.h"
#include "runtime/stream/stream.h"

namespace graft {

// For CPU-like devices; tensors of one floating dtype.

// Writes product.output: a work-item holds a row of positions, the taps' weights are numbers.
void patch_sums(Stream& stream, const PatchProduct& product);

// Writes product.factor: an element is the sum of what many vectors held.
void patch_sums_factor(Stream& stream, const PatchProduct& product);

}  // namespace graft
