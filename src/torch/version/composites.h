// src/torch/version/composites.h: from inside torch: operators that call others.
#pragma once

#include <ATen/ops/_validate_sparse_coo_tensor_args_native.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>

namespace graft::binding::native {

using at::native::_validate_sparse_coo_tensor_args;
using at::native::dropout;
using at::native::gru;
using at::native::gru_cell;
using at::native::lstm;
using at::native::lstm_cell;
using at::native::scaled_dot_product_attention;

}  // namespace graft::binding::native
