// src/kernels/convolution/blocked_convolution.h: convolutions as register-blocked products of
// packed patches.
#pragma once

#include "kernels/convolution/convolution.h"

namespace graft {

// Every kind of convolution as a product of packed panels (panels.h), some images at a time; groups
// one after another where they are few and have 16 channels or more on both sides. Forward: weight
// [out, channels * kernel] by patches that a kernel gathers. Gradient of the input: the same with
// the weight turned about and the gradient (or, for a kernel of one element, the product) spread by
// the stride. Gradient of the weight: the result's gradient by the patches' transpose, summed over
// all images in float32. A kernel of one element, without padding and stride, multiplies the images
// as they lie. bias: of the forward kind only, may be null. False, with nothing done, where the
// device or the case has no such product (see fits_blocks()).
bool blocked_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                         const TensorView* bias, const ConvolutionParameters& parameters);

}  // namespace graft
