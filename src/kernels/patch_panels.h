// src/kernels/patch_panels.h: the patches of a convolution, packed for register-blocked products.
#pragma once

#include "kernels/convolution_kernel.h"

namespace graft {

// The forward convolution of one group as a product: weight [out, channels * kernel] by patches
// that a kernel gathers into panels (panels.h), some images at a time. False, with nothing done,
// where the device or the case has no such product (see fits_blocks()).
bool blocked_convolution(Stream& stream, const ConvolutionViews& views, const TensorView* bias,
                         const ConvolutionParameters& parameters);

}  // namespace graft
