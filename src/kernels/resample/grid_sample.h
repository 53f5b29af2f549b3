// src/kernels/resample/grid_sample.h: images and volumes sampled at positions that a grid gives.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// As torch.nn.functional.grid_sample describes them; the numbers are PyTorch's.
struct GridSampling {
  enum Mode { kLinear, kNearest, kCubic } mode = kLinear;
  enum Padding { kZeros, kBorder, kReflection } padding = kZeros;
  bool align_corners = false;
};

// output[n, c, p] = input[n, c, ...] at the position grid[n, p, :] (x first) in -1 to 1. input is
// [n, c, h, w] or [n, c, d, h, w] with any strides, output [n, c, points] and grid
// [n, points, dimensions] are contiguous, all of one floating dtype. Positions and sums in float32
// (float64 for float64). A position that is no number samples nothing.
GRAFT_EXPORT void grid_sample(Stream& stream, const TensorView& output, const TensorView& input,
                              const TensorView& grid, const GridSampling& sampling);

// Its gradients; grad_output as output. grad_input (any strides, null: not wanted) is summed in the
// order of the points, so it does not depend on threads; grad_grid (null: not wanted) as grid.
GRAFT_EXPORT void grid_sample_backward(Stream& stream, const TensorView* grad_input,
                                       const TensorView* grad_grid, const TensorView& grad_output,
                                       const TensorView& input, const TensorView& grid,
                                       const GridSampling& sampling);

}  // namespace graft
