// src/torch/version/minor/2_15.h: names as of torch 2.15.
#pragma once

#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Padding.h>
#include <ATen/native/Pool.h>

namespace graft::binding::native {

template <int kDimensions>
void check_valid_input(const at::Tensor& input, at::IntArrayRef padding) {
  at::native::padding::check_valid_input(input, padding, kDimensions);
}
// The overload that takes the mode refuses bicubic volumes, which 2.15 computes.
inline void check_grid_sampler_3d(const at::Tensor& input, const at::Tensor& grid, int64_t) {
  at::native::check_grid_sampler_3d(input, grid);
}
using at::native::pool3d_backward_shape_check;

}  // namespace graft::binding::native
