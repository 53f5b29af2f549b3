// src/torch/version/ops/patches.h: from inside torch: patches of images.
#pragma once

#include <ATen/native/UnfoldBackward.h>
#include <ATen/native/im2col_shape_check.h>

namespace graft::binding::native {

using at::native::col2im_shape_check;
using at::native::im2col_shape_check;
using at::native::unfold_backward_stub;

}  // namespace graft::binding::native
