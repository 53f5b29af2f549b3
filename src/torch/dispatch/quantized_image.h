// src/torch/dispatch/quantized_image.h: quantized tensors as the integers that they hold, and
// elsewhere.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/quantized/Quantizer.h>

#include <cstddef>

namespace graft::binding {

// The integers of a quantized tensor as a plain tensor of int8, uint8 or int32 over the same
// memory. Of types below a byte: all bytes of its storage, as uint8 of one dimension.
at::Tensor integers_of(const at::Tensor& quantized);

// A quantized tensor over the memory of integers (int8, uint8 or int32), on their device.
// REQUIRES: quantizer's own tensors lie there too; see quantizer_on.
at::Tensor quantized_over(const at::Tensor& integers, const at::QuantizerPtr& quantizer);

// What the integers of a quantized tensor mean, with its scales and zero points on device.
at::QuantizerPtr quantizer_on(const at::Tensor& quantized, c10::Device device);

// A tensor of the same sizes, strides, numbers and quantizer on device. Throws Error.
at::Tensor quantized_copy(const at::Tensor& quantized, c10::Device device);

// Gives to the sizes, numbers and quantizer of from, of the same dtype, on whatever device.
void assign_quantized(const at::Tensor& to, const at::Tensor& from, bool non_blocking = false);

// Bytes of the integers and, where they are tensors, of the scales and zero points.
size_t quantized_bytes(const at::Tensor& quantized);

}  // namespace graft::binding
