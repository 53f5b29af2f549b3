// src/torch/version/factories.h: from inside torch: new tensors and ranges.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/TensorFactories.h>

namespace graft::binding::native {

using at::native::check_supported_max_int_with_precision;
using at::native::complex_stub;
using at::native::compute_arange_size;
using at::native::fill_empty_deterministic_;
using at::native::polar_stub;
using at::native::wrapped_scalar_tensor;
using at::native::ZeroTensorAllocator;

}  // namespace graft::binding::native
