// src/torch/version/ops/convolution.h: from inside torch: sizes of convolutions.
#pragma once

#include <ATen/native/ConvUtils.h>

namespace graft::binding::native {

using at::native::conv_input_size;
using at::native::conv_output_size;

}  // namespace graft::binding::native
