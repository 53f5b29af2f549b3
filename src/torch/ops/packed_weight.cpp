// src/torch/ops/packed_weight.cpp: int8 weights as kernels take them, and what surrounds their
// products.
#include "torch/ops/packed_weight.h"

#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>

#include <limits>

#include "kernels/pointwise/pointwise.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/quantization.h"

namespace graft::binding {
namespace {

struct Meaning {
  at::Tensor scales, zeros;  // zeros: int16, undefined where all are 0
};

Meaning meaning_of(const at::Tensor& weight, bool transposed) {
  const auto options = at::TensorOptions().device(weight.device());
  if (weight.qscheme() == at::kPerTensorAffine) {
    Meaning found{at::full({1}, weight.q_scale(), options.dtype(at::kFloat)), {}};
    const int64_t zero = weight.q_zero_point();
    if (zero != 0) found.zeros = at::full({1}, zero, options.dtype(at::kShort));
    return found;
  }
  TORCH_CHECK(
      weight.qscheme() == at::kPerChannelAffine && !transposed && weight.q_per_channel_axis() == 0,
      "a weight needs one scale, or one for each output channel; got ",
      c10::toString(weight.qscheme()), " along dimension ", weight.q_per_channel_axis(),
      transposed ? " of a transposed convolution" : "");
  Meaning found{weight.q_per_channel_scales().to(at::kFloat), {}};
  const at::Tensor zeros = weight.q_per_channel_zero_points();
  if (zeros.ne(0).any().item<bool>()) found.zeros = zeros.to(at::kShort);
  return found;
}

// Missing biases are 0.
Operand bias_of(const PackedWeight& weight, const at::Tensor& sums, int64_t axis) {
  return weight.bias.has_value() ? Operand(along(*weight.bias, sums, axis)) : Operand(same(0));
}

}  // namespace

PackedWeight PackedWeight::of(const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                              bool transposed) {
  TORCH_CHECK(weight.scalar_type() == at::kQInt8, "a packed weight must be of torch.qint8, got ",
              weight.dtype());
  PackedWeight packed;
  packed.quantized = weight;
  packed.values = integers_of(weight);
  const Meaning meaning = meaning_of(weight, transposed);
  packed.scales = meaning.scales;
  if (meaning.zeros.defined()) {
    at::DimVector sizes(static_cast<size_t>(weight.dim()), 1);
    sizes[0] = meaning.zeros.numel();
    packed.values = packed.values.to(at::kShort).sub_(meaning.zeros.view(sizes));
  }
  if (!transposed) {
    packed.offsets = at::sum(packed.values.flatten(1), {1}, false, at::kInt).neg_();
  }
  if (bias.has_value() && bias->defined()) {
    const at::Tensor vector = bias->detach().to(weight.device(), at::kFloat).contiguous();
    TORCH_CHECK(vector.dim() == 1, "bias should be a vector (1D Tensor)");
    packed.bias = vector;
  }
  return packed;
}

std::tuple<at::Tensor, std::optional<at::Tensor>> PackedWeight::unpack() const {
  return {quantized_copy(quantized, at::kCPU),
          bias.has_value() ? std::optional(bias->cpu()) : std::nullopt};
}

at::Tensor requantized(const at::Tensor& sums, int64_t axis, const PackedWeight& weight,
                       double input_scale, at::ScalarType type, double scale, int64_t zero,
                       bool relu) {
  at::Tensor result = at::_empty_affine_quantized(sums.sizes(), sums.options().dtype(type), scale,
                                                  zero, sums.suggest_memory_format());
  if (sums.numel() == 0) return result;
  const Bounds bounds = bounds_of(type);
  const auto lowest = static_cast<double>(zero);
  const TensorView output = view_of(integers_of(result));
  const Operand inputs[] = {view_of(sums), same(input_scale), along(weight.scales, sums, axis),
                            bias_of(weight, sums, axis)};
  const Scalar scalars[] = {same(1 / scale), same(lowest), same(relu ? lowest : bounds.low),
                            same(bounds.high)};
  pointwise(stream_of(sums), op_row<"requantize">(), GRAFT_FLOAT32, {&output, 1}, inputs, scalars);
  return result;
}

DynamicInput::DynamicInput(const at::Tensor& numbers, bool reduce_range)
    : integers(at::empty_like(numbers, numbers.options().dtype(at::kByte))),
      scale(at::empty({1}, numbers.options())),
      zero(at::empty({1}, scale.options().dtype(at::kInt))) {
  const auto [least, most] = at::aminmax(numbers);
  Stream& stream = stream_of(numbers);
  const TensorView chosen[] = {view_of(scale), view_of(zero)};
  const Operand range[] = {along(least, scale), along(most, scale)};
  const Scalar span[] = {same(0), same(reduce_range ? 127 : 255), same(0)};
  pointwise(stream, op_row<"choose_quantization">(), GRAFT_FLOAT32, chosen, range, span);
  const TensorView output = view_of(integers);
  const Operand inputs[] = {view_of(numbers), along(scale, numbers), along(zero, numbers)};
  const Scalar bounds[] = {same(0), same(255)};
  pointwise(stream, op_row<"quantize">(), GRAFT_FLOAT32, {&output, 1}, inputs, bounds);
}

at::Tensor rescaled(const at::Tensor& sums, int64_t axis, const PackedWeight& weight,
                    const at::Tensor& input_scale, bool relu) {
  at::Tensor result = at::empty_like(sums, sums.options().dtype(at::kFloat));
  const TensorView output = view_of(result);
  const Operand inputs[] = {view_of(sums), along(input_scale, sums),
                            along(weight.scales, sums, axis), bias_of(weight, sums, axis)};
  const Scalar lowest = same(relu ? 0 : -std::numeric_limits<double>::infinity());
  pointwise(stream_of(sums), op_row<"rescale">(), GRAFT_FLOAT32, {&output, 1}, inputs,
            {&lowest, 1});
  return result;
}

}  // namespace graft::binding
