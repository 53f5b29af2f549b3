// src/torch/version/ops/layer_norm.h: from inside torch: layer norm.
#pragma once

#include <ATen/native/layer_norm.h>

namespace graft::binding::native {

using at::native::_check_layer_norm_inputs;

}  // namespace graft::binding::native
