// src/kernels/convolution/winograd.h: convolutions of 3 x 3 with fewer products, after Winograd.
#pragma once

#include "kernels/convolution/convolution.h"

namespace graft {

// Which tile (winograd_tile.h) generated_convolution() takes: 2 or 4 results of a side, or 0 where
// another kernel was measured to be faster, or the case is none: it takes the forward kind and the
// gradient of the input, two spatial dimensions, weights of 3 x 3, stride and dilation 1, one
// group, float32 or a half type.
int winograd_results(const OpenDevice& device, graft_convolution_kind kind,
                     const ConvolutionViews& views, const TensorView* bias,
                     const ConvolutionParameters& parameters);

// The convolution with that tile, some images at a time: three transforms (winograd_kernels.h) and
// between them a batch of products, through panels on CPU-like devices, through tiles of local
// memory elsewhere. Sums in float32; with operands in [-1, 1) and c channels, the error against
// exact sums is below 1e-5 * sqrt(c) for tiles of 2 results, 1e-4 * sqrt(c) for tiles of 4, which
// is too much for float32.
// REQUIRES: what winograd_results() takes, results of 2 or 4. bias: of the forward kind, or null.
void winograd_convolution(Stream& stream, graft_convolution_kind kind,
                          const ConvolutionViews& views, const TensorView* bias,
                          const ConvolutionParameters& parameters, int results);

}  // namespace graft
