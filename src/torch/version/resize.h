// src/torch/version/resize.h: from inside torch: sizes of outputs and storages.
#pragma once

#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>

namespace graft::binding::native {

using at::native::checkSetStorage;
using at::native::fill_resize_deterministic_;
using at::native::resize_output;

}  // namespace graft::binding::native
