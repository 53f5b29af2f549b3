// src/kernels/convolution/winograd_kernels.h: the three transforms of Winograd's convolutions.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// Where the transforms put lines of depth elements: as panels (panels.h) that are width wide, one
// matrix for each of the tile's products. Lines beyond the last are zeros.
struct WinogradPanels {
  graft_address address = 0;
  int64_t lines = 0, depth = 0, width = 1;

  int64_t each() const { return (lines + width - 1) / width * width * depth; }  // of a matrix
  uint64_t bytes(int products) const {
    return static_cast<uint64_t>(each() * products) * sizeof(float);
  }
};

// The tiles of a result: lines count them, image after image and row after row.
struct WinogradGrid {
  int results = 2;  // of a tile's side
  int64_t down = 0, across = 0;
  int64_t padding[2] = {0, 0};
};

// All tensors: float32 or a half type, any strides, fewer than 2^30 elements apart; panels and
// products float32. lanes: lines that a work-item transforms together; it divides width.

// G g G^T of weight [out, c, 3, 3]: lines are outs.
void winograd_weights(Stream& stream, const WinogradPanels& to, const TensorView& weight,
                      int results, int64_t lanes);

// B^T d B of input [n, c, h, w]: lines are tiles.
void winograd_elements(Stream& stream, const WinogradPanels& to, const TensorView& input,
                       const WinogradGrid& grid, int64_t lanes);

// output [n, out, h, w] = A^T products A + bias [out] (may be null), with products [products, out,
// tiles].
void winograd_sums(Stream& stream, const TensorView& output, const TensorView& products,
                   const TensorView* bias, const WinogradGrid& grid);

}  // namespace graft
