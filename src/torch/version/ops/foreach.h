// src/torch/version/ops/foreach.h: from inside torch: lists of tensors.
#pragma once

#include <ATen/native/ForeachUtils.h>

namespace graft::binding::native {

using at::native::can_use_fast_route;
using at::native::check_fast_path_restrictions;
using at::native::check_foreach_api_restrictions;
using at::native::convert_tensor_to_scalar_list;

}  // namespace graft::binding::native
