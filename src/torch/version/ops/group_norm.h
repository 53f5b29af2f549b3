// src/torch/version/ops/group_norm.h: from inside torch: group norm.
#pragma once

#include <ATen/native/group_norm.h>
#include <ATen/ops/native_group_norm_backward_native.h>
#include <ATen/ops/native_group_norm_native.h>

namespace graft::binding::native {

using at::native::GroupNormBackwardKernel;
using at::native::GroupNormKernel;
using at::native::native_group_norm;
using at::native::native_group_norm_backward;

}  // namespace graft::binding::native
