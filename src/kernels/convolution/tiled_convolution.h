// src/kernels/convolution/tiled_convolution.h: convolutions as products of tiles, for GPU-like
// devices.
#pragma once

#include "kernels/convolution/convolution.h"
#include "kernels/matmul/tile_shape.h"

namespace graft {

// generated_convolution() as an implicit product: the tiles of tile_product.h are gathered from the
// images, which no workspace unfolds. Every kind, dtype, stride, dilation and group. False, with
// nothing done, where the device is not GPU-like or has no room for a tile, a tensor is too large
// for positions of 32 bits, or there is nothing to sum.
//   forward:  output[out, (image, position)] = weight[out, (channel, tap)] patches
//   input:    input[channel, (image, position)] = weight^T[channel, (out, tap)] patches
//   weight:   weight[out, (channel, tap)] = output[out, (image, position)] patches
bool tiled_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                       const TensorView* bias, const ConvolutionParameters& parameters);

// The same with the shape given, which fits the device.
bool tiled_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                       const TensorView* bias, const ConvolutionParameters& parameters,
                       const TileShape& shape);

}  // namespace graft
