// src/kernels/convolution/direct_kernel.h: the generated direct convolutions, for cases without a
// library.
#pragma once

#include "graft/extensions.h"
#include "kernels/convolution/convolution.h"

namespace graft {

// Every kind for every floating dtype, for convolution()'s small integers, and any strides: through
// winograd_convolution(), blocked_convolution(), convolution_products() or tiled_convolution(),
// the first that takes the case; elsewhere one work-item sums one element of the written tensor,
// correct first. bias is read by the forward kind only and may be null. Writes zeros (or the bias)
// when there is nothing to sum.
void generated_convolution(Stream& stream, graft_convolution_kind kind,
                           const ConvolutionViews& views, const TensorView* bias,
                           const ConvolutionParameters& parameters);

}  // namespace graft
