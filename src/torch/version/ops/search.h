// src/torch/version/ops/search.h: from inside torch: searches and repetitions.
#pragma once

#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Repeat.h>

namespace graft::binding::native {

using at::native::repeat_interleave_common;
using at::native::searchsorted_maybe_trim_input_tensors;
using at::native::searchsorted_pre_check;
using at::native::searchsorted_scalar_tensor;

}  // namespace graft::binding::native
