// src/kernels/convolution/direct_convolution.h: the kinds of convolution as direct sums over
// patches, for CPU-like devices.
#pragma once

#include "kernels/convolution/convolution.h"

namespace graft {

// A convolution of any kind in floating dtypes as direct sums (grouped_convolution.h): for groups
// that are too small for a product each. The gradient of the input is a plain sum over patches of
// the output's gradient for every remainder of its positions by the strides, so that no product
// with a zero is taken. Tensors whose rows are not dense (channels-last) are copied. bias: of the
// forward kind only, may be null. False, with nothing done, for other dtypes and devices, short
// rows of one group, and where nothing is summed.
bool convolution_products(Stream& stream, graft_convolution_kind kind,
                          const ConvolutionViews& views, const TensorView* bias,
                          const ConvolutionParameters& parameters);

}  // namespace graft
