// src/torch/ops/quantize.cpp: from numbers to quantized tensors and back.
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/quantized/Quantizer.h>

#include "kernels/pointwise/pointwise.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/quantization.h"
#include "torch/version/ops/quantization.h"

namespace graft::binding {
namespace {

// Where the numbers of 32 bits are computed in float32, their largest one would not fit again.
graft_dtype compute_type(at::ScalarType type) {
  return type == at::kQInt32 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
}

void quantize(const Op& op, const at::Tensor& numbers, const at::Tensor& quantized,
              const Operand& scale, const Operand& zero) {
  if (numbers.numel() == 0) return;
  const graft_dtype compute = compute_type(quantized.scalar_type());
  const Bounds bounds = bounds_of(quantized.scalar_type());
  const TensorView output = view_of(integers_of(quantized));
  const Operand inputs[] = {view_of(numbers), scale, zero};
  const graft::Scalar limits[] = {graft::Scalar::of(compute, bounds.low),
                                  graft::Scalar::of(compute, bounds.high)};
  pointwise(stream_of(numbers), op, compute, {&output, 1}, inputs, limits);
}

void dequantize(const at::Tensor& quantized, const at::Tensor& numbers, const Operand& scale,
                const Operand& zero) {
  if (numbers.numel() == 0) return;
  const TensorView output = view_of(numbers);
  const Operand inputs[] = {view_of(integers_of(quantized)), scale, zero};
  pointwise(stream_of(numbers), op_row<"dequantize">(), compute_type(quantized.scalar_type()),
            {&output, 1}, inputs);
}

void quantize_alike(const at::Tensor& numbers, at::Tensor& quantized, double scale, int64_t zero) {
  quantize(op_row<"quantize">(), numbers, quantized, same(scale), same(static_cast<double>(zero)));
}

void quantize_channels(const at::Tensor& numbers, at::Tensor& quantized, const at::Tensor& scales,
                       const at::Tensor& zeros, int64_t axis) {
  quantize(op_row<"quantize">(), numbers, quantized, along(scales, numbers, axis),
           along(zeros, numbers, axis));
}

void quantize_float_zeros(const at::Tensor& numbers, at::Tensor& quantized,
                          const at::Tensor& scales, const at::Tensor& zeros, int64_t axis) {
  quantize(op_row<"quantize_float_zero">(), numbers, quantized, along(scales, numbers, axis),
           along(zeros, numbers, axis));
}

void dequantize_alike(const at::Tensor& quantized, at::Tensor& numbers, double scale,
                      int64_t zero) {
  dequantize(quantized, numbers, same(scale), same(static_cast<double>(zero)));
}

void dequantize_channels(const at::Tensor& quantized, at::Tensor& numbers, const at::Tensor& scales,
                         const at::Tensor& zeros, int64_t axis) {
  dequantize(quantized, numbers, along(scales, numbers, axis), along(zeros, numbers, axis));
}

at::Tensor int_repr(const at::Tensor& self) {
  return integers_of(self).clone(self.suggest_memory_format());
}

std::vector<at::Tensor> dequantize_list(at::TensorList tensors) {
  std::vector<at::Tensor> numbers;
  for (const at::Tensor& tensor : tensors) numbers.push_back(tensor.dequantize());
  return numbers;
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_make_per_tensor_quantized_tensor)(const at::Tensor& self, double scale,
                                                             int64_t zero_point) {
  const at::Tensor integers = self.clone(at::MemoryFormat::Contiguous);
  return quantized_over(integers, at::make_per_tensor_affine_quantizer(
                                      scale, zero_point, c10::toQIntType(self.scalar_type())));
}

at::Tensor GRAFT_OPERATOR(_make_per_channel_quantized_tensor)(const at::Tensor& self,
                                                              const at::Tensor& scale,
                                                              const at::Tensor& zero_point,
                                                              int64_t axis) {
  const at::Tensor integers = self.clone(at::MemoryFormat::Contiguous);
  return quantized_over(integers,
                        at::make_per_channel_affine_quantizer(scale, zero_point, axis,
                                                              c10::toQIntType(self.scalar_type())));
}

std::vector<at::Tensor> GRAFT_OPERATOR(quantize_per_tensor_tensors)(at::TensorList tensors,
                                                                    const at::Tensor& scales,
                                                                    const at::Tensor& zero_points,
                                                                    at::ScalarType dtype) {
  const at::Tensor scale = scales.cpu(), zero = zero_points.cpu();
  std::vector<at::Tensor> quantized;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    quantized.push_back(at::quantize_per_tensor(tensors[i], scale.select(0, at).item<double>(),
                                                zero.select(0, at).item<int64_t>(), dtype));
  }
  return quantized;
}

void fill_quantization_stubs() {
  using namespace native;
  const auto fill = [](auto& stub, auto function) { stub.set_privateuse1_dispatch_ptr(function); };
  fill(quantize_tensor_per_tensor_affine_stub, &quantize_alike);
  fill(quantize_tensor_per_channel_affine_stub, &quantize_channels);
  fill(quantize_tensor_per_channel_float_qparams_stub, &quantize_float_zeros);
  fill(dequantize_tensor_per_tensor_affine_stub, &dequantize_alike);
  fill(dequantize_tensor_per_channel_affine_stub, &dequantize_channels);
  fill(dequantize_tensor_per_channel_float_qparams_stub, &dequantize_channels);
  leave_unfilled(quantize_tensor_per_tensor_affine_sub_byte_stub);
  leave_unfilled(dequantize_tensor_per_tensor_affine_sub_byte_stub);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_QUANTIZED_KEY, m) {
  m.impl("int_repr", TORCH_FN(int_repr));
  m.impl("dequantize.tensors", TORCH_FN(dequantize_list));
}

}  // namespace graft::binding
