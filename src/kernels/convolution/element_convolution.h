// src/kernels/convolution/element_convolution.h: convolutions of any kind, an element of the result
// by a work-item.
#pragma once

#include "graft/extensions.h"
#include "kernels/convolution/convolution.h"

namespace graft {

// Every kind for every floating dtype and convolution()'s small integers, with any strides: right
// before fast. bias is of the forward kind only and may be null. Writes zeros (or the bias) where
// there is nothing to sum. REQUIRES: the written tensor has elements.
void element_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                         const TensorView* bias, const ConvolutionParameters& parameters);

}  // namespace graft
