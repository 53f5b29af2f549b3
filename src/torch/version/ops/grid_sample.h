// src/torch/version/ops/grid_sample.h: from inside torch: sampling on a grid.
#pragma once

#include <ATen/native/GridSamplerUtils.h>

namespace graft::binding::native {

using at::native::check_grid_sampler_2d;
using at::native::check_grid_sampler_common;
using at::native::detail::GridSamplerInterpolation;
using at::native::detail::GridSamplerPadding;

}  // namespace graft::binding::native
