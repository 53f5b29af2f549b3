// src/kernels/convolution/patch_matmul.h: the product of a convolution's weight and packed patches.
#pragma once

#include "kernels/convolution/patch_pack.h"

namespace graft {

// result [n, out, positions...] = weight * patches of input [n, channels, spatial...] + bias [out]
// (null: none), with sums in float32. weight: contiguous [out, channels, kernel...]; input and
// result: one dtype, float32 or a half type, any strides. Images are taken in turns, so that their
// patches need 64 MB or those of one image.
// REQUIRES: fits_blocks() (blocked_matmul.h) and what pack_patches() requires.
void multiply_patches(Stream& stream, const TensorView& result, const TensorView& weight,
                      const TensorView& input, const PatchGeometry& geometry,
                      const TensorView* bias);

}  // namespace graft
