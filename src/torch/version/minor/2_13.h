// src/torch/version/minor/2_13.h: names as of torch 2.13.
#pragma once

#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Padding.h>
#include <ATen/native/Pool.h>

namespace graft::binding::native {

using at::native::check_grid_sampler_3d;
using at::native::padding::check_valid_input;
inline constexpr auto& pool3d_backward_shape_check = at::native::max_pool3d_backward_shape_check;

}  // namespace graft::binding::native
