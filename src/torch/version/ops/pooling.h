// src/torch/version/ops/pooling.h: from inside torch: sizes of pooling.
#pragma once

#include <ATen/native/FractionalMaxPooling.h>
#include <ATen/native/Pool.h>

namespace graft::binding::native {

using at::native::fractional_max_pool_check_shape;
using at::native::pool3d_shape_check;
using at::native::pooling_output_shape;

}  // namespace graft::binding::native
