// src/torch/version/ops/attention.h: from inside torch: attention.
#pragma once

#include <ATen/native/transformers/attention.h>

namespace graft::binding::native {

using at::native::_fused_sdp_choice_stub;

}  // namespace graft::binding::native
