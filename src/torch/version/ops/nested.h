// src/torch/version/ops/nested.h: from inside torch: nested tensors.
#pragma once

#include <ATen/native/nested/NestedTensorMath.h>
#include <ATen/ops/_nested_compute_contiguous_strides_offsets_native.h>
#include <ATen/ops/_nested_tensor_softmax_with_shape_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/is_pinned_native.h>

namespace graft::binding::native {

using at::native::_check_nested_layer_norm_inputs;
using at::native::_nested_compute_contiguous_strides_offsets;
using at::native::_nested_view_from_buffer;
using at::native::bmm_nested;
using at::native::get_nested_tensor_impl;
using at::native::is_pinned;
using at::native::NestedTensor_softmax_dropout;
using at::native::NestedTensor_to_padded_tensor_generic;
using at::native::NestedTensorImpl;

}  // namespace graft::binding::native
