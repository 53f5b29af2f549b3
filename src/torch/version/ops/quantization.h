// src/torch/version/ops/quantization.h: from inside torch: quantized tensors and their packed
// weights.
#pragma once

#include <ATen/native/quantized/AffineQuantizer.h>
#include <ATen/native/quantized/FakeQuantAffine.h>
#include <ATen/native/quantized/PackedParams.h>

namespace graft::binding::native {

using at::native::dequantize_tensor_per_channel_affine_stub;
using at::native::dequantize_tensor_per_channel_float_qparams_stub;
using at::native::dequantize_tensor_per_tensor_affine_stub;
using at::native::dequantize_tensor_per_tensor_affine_sub_byte_stub;
using at::native::fake_quant_grad_learnable_channel_stub;
using at::native::fake_quant_grad_learnable_tensor_stub;
using at::native::fake_quant_per_channel_cachemask_stub;
using at::native::fake_quant_tensor_cachemask_stub;
using at::native::fake_quant_tensor_cachemask_tensor_qparams_stub;
using at::native::quantize_tensor_per_channel_affine_stub;
using at::native::quantize_tensor_per_channel_float_qparams_stub;
using at::native::quantize_tensor_per_tensor_affine_stub;
using at::native::quantize_tensor_per_tensor_affine_sub_byte_stub;

}  // namespace graft::binding::native
