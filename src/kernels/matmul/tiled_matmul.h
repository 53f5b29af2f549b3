// src/kernels/matmul/tiled_matmul.h: the generated matrix product in local memory, for GPU-like
// devices.
#pragma once

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/tile_shape.h"

namespace graft {

// matmul() for every dtype that generated_matmul() takes and any strides. False, with nothing done,
// where the device is not GPU-like or has no room for a tile, or there is nothing to sum. The shape
// is the tuned one (tuned_tiles.h), else the vendor's, cut to the device and the product.
// REQUIRES: addend is null when beta is 0.
bool tiled_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                  const TensorView& b, const MatmulEpilogue& epilogue);

// The same with the shape given, which fits the device.
void tiled_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                  const TensorView& b, const MatmulEpilogue& epilogue, const TileShape& shape);

}  // namespace graft
