// src/torch/version/views.h: from inside torch: views.
#pragma once

#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>

namespace graft::binding::native {

using at::native::_reshape_alias;
using at::native::as_strided_tensorimpl;
using at::native::view;

}  // namespace graft::binding::native
