// src/torch/version/padding.h: from inside torch: padding by reflection and by the edge.
#pragma once

#include <ATen/native/Padding.h>

namespace graft::binding::native {

using at::native::padding::check_valid_input;

}  // namespace graft::binding::native
