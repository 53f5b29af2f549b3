// src/torch/version/ops/reduction.h: from inside torch: reductions.
#pragma once

#include <ATen/native/ReduceAllOps.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/TensorDimApply.h>
#include <ATen/ops/nansum_native.h>

namespace graft::binding::native {

using at::native::aminmax_allreduce_stub;
using at::native::aminmax_stub;
using at::native::and_stub;
using at::native::argmax_stub;
using at::native::argmin_stub;
using at::native::cumprod_stub;
using at::native::cumsum_stub;
using at::native::get_zero_numel_tensor_size;
using at::native::logcumsumexp_stub;
using at::native::max_all_stub;
using at::native::max_values_stub;
using at::native::mean_stub;
using at::native::min_all_stub;
using at::native::min_values_stub;
using at::native::nansum;
using at::native::nansum_out;
using at::native::nansum_stub;
using at::native::norm_stub;
using at::native::or_stub;
using at::native::prod_stub;
using at::native::std_var_stub;
using at::native::sum_stub;
using at::native::zero_numel_check_dims;

}  // namespace graft::binding::native
