// src/torch/ops_convolution.cpp: convolutions of every kind and their gradients.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "kernels/convolution.h"
#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"

namespace graft::binding {
namespace {

ConvolutionParameters parameters_of(at::IntArrayRef stride, at::IntArrayRef padding,
                                    at::IntArrayRef dilation, bool transposed, int64_t groups,
                                    int64_t rank) {
  if (rank > 3) throw Error(GRAFT_UNSUPPORTED, "no convolution above three spatial dimensions");
  ConvolutionParameters found;
  // PyTorch writes one number for all dimensions.
  const auto fill = [rank](at::IntArrayRef from, int64_t* to) {
    for (int64_t i = 0; i < rank; ++i) to[i] = from[from.size() == 1 ? 0 : i];
  };
  fill(stride, found.stride);
  fill(padding, found.padding);
  fill(dilation, found.dilation);
  found.groups = groups;
  found.transposed = transposed;
  return found;
}

at::MemoryFormat format_of(const at::Tensor& input, const at::Tensor& weight) {
  const auto asked = [](const at::Tensor& tensor, at::MemoryFormat format) {
    return tensor.suggest_memory_format() == format;
  };
  if (input.dim() == 4 && (asked(input, at::MemoryFormat::ChannelsLast) ||
                           asked(weight, at::MemoryFormat::ChannelsLast))) {
    return at::MemoryFormat::ChannelsLast;
  }
  if (input.dim() == 5 && (asked(input, at::MemoryFormat::ChannelsLast3d) ||
                           asked(weight, at::MemoryFormat::ChannelsLast3d))) {
    return at::MemoryFormat::ChannelsLast3d;
  }
  return at::MemoryFormat::Contiguous;
}

void check_types(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(input.options().type_equal(weight.options()), "Input type (", input.toString(),
              ") and weight type (", weight.toString(), ") should be the same");
  TORCH_CHECK(!bias.defined() || input.options().type_equal(bias.options()), "Input type (",
              input.toString(), ") and bias type (", bias.toString(), ") should be the same");
}

}  // namespace

at::Tensor GRAFT_OPERATOR(convolution_overrideable)(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups) {
  check_types(input, weight, or_undefined(bias));
  const auto parameters =
      parameters_of(stride, padding, dilation, transposed, groups, input.dim() - 2);
  const auto sizes =
      transposed
          ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding,
                                        stride, dilation, groups)
          : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  at::Tensor output = at::empty(sizes, input.options().memory_format(format_of(input, weight)));
  if (output.numel() == 0) return output;
  const at::Tensor given = or_undefined(bias);
  const at::Tensor dense = given.defined() ? given.contiguous() : given;
  const OptionalView bias_view(dense);
  convolution(stream_of(input), view_of(output), view_of(input), view_of(weight), bias_view.get(),
              parameters);
  return output;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(convolution_backward_overrideable)(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef, int64_t groups, std::array<bool, 3> output_mask) {
  check_types(input, weight, grad_output);
  const auto parameters =
      parameters_of(stride, padding, dilation, transposed, groups, input.dim() - 2);
  const at::MemoryFormat format = format_of(input, weight);
  Stream& stream = stream_of(input);
  const TensorView gradient = view_of(grad_output);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = at::empty(input.sizes(), input.options().memory_format(format));
    if (grad_input.numel() > 0) {
      convolution_backward_input(stream, view_of(grad_input), gradient, view_of(weight),
                                 parameters);
    }
  }
  if (output_mask[1]) {
    grad_weight = at::empty(weight.sizes(), weight.options().memory_format(format));
    if (grad_weight.numel() > 0) {
      convolution_backward_weight(stream, view_of(grad_weight), gradient, view_of(input),
                                  parameters);
    }
  }
  if (output_mask[2]) {
    grad_bias = at::empty({grad_output.size(1)}, grad_output.options());
    convolution_backward_bias(stream, view_of(grad_bias), gradient);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace graft::binding
