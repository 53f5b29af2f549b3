// src/torch/version/resize.h: what Graft takes from inside torch: where results go: sizes of outputs and storages.
#pragma once

#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>

namespace graft::binding::native {

using at::native::checkSetStorage;
using at::native::fill_resize_deterministic_;
using at::native::resize_output;

}  // namespace graft::binding::native
