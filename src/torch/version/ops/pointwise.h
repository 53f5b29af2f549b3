// src/torch/version/ops/pointwise.h: from inside torch: elementwise operators.
#pragma once

#include <ATen/native/Activation.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Cross.h>
#include <ATen/native/Fill.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/Pow.h>
#include <ATen/native/RangeFactories.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/native/UnaryOps.h>

namespace graft::binding::native {

using at::native::add_stub;
using at::native::addr_stub;
using at::native::alpha_check;
using at::native::bernoulli_scalar_stub;
using at::native::bernoulli_tensor_stub;
using at::native::cauchy_stub;
using at::native::clamp_max_scalar_stub;
using at::native::clamp_min_scalar_stub;
using at::native::clamp_scalar_stub;
using at::native::cross_stub;
using at::native::div_floor_stub;
using at::native::div_trunc_stub;
using at::native::exponential_stub;
using at::native::fill_stub;
using at::native::fmod_stub;
using at::native::geometric_stub;
using at::native::hardshrink_stub;
using at::native::isin_default_stub;
using at::native::linspace_stub;
using at::native::log_normal_stub;
using at::native::max_stub;
using at::native::min_stub;
using at::native::multinomial_with_replacement_stub;
using at::native::nan_to_num_stub;
using at::native::nextafter_stub;
using at::native::normal_stub;
using at::native::polygamma_stub;
using at::native::pow_tensor_scalar_stub;
using at::native::random_from_to_stub;
using at::native::random_full_64_bits_range_stub;
using at::native::random_stub;
using at::native::remainder_stub;
using at::native::shrink_backward_stub;
using at::native::sub_stub;
using at::native::threshold_stub;
using at::native::uniform_stub;

}  // namespace graft::binding::native
