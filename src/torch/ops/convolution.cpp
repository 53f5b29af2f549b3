// src/torch/ops/convolution.cpp: convolutions of every kind and their gradients.
#include "kernels/convolution/convolution.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/convolution.h"

namespace graft::binding {
namespace {

ConvolutionParameters parameters_of(at::IntArrayRef stride, at::IntArrayRef padding,
                                    at::IntArrayRef dilation, bool transposed, int64_t groups,
                                    int64_t rank) {
  TORCH_CHECK(rank > 0, "expected an input with spatial dimensions");
  for (const at::IntArrayRef list : {stride, padding, dilation}) {
    TORCH_CHECK(list.size() == 1 || static_cast<int64_t>(list.size()) == rank,
                "expected one number or ", rank, " for stride, padding and dilation, but got ",
                list);
  }
  if (rank > 3) throw Error(GRAFT_UNSUPPORTED, "no convolution above three spatial dimensions");
  ConvolutionParameters found;
  // PyTorch writes one number for all dimensions.
  const auto fill = [rank](at::IntArrayRef from, int64_t* to) {
    for (int64_t i = 0; i < rank; ++i) to[i] = from[from.size() == 1 ? 0 : i];
  };
  fill(stride, found.stride);
  fill(padding, found.padding);
  fill(dilation, found.dilation);
  for (int64_t i = 0; i < rank; ++i) {
    TORCH_CHECK(found.stride[i] > 0, "non-positive stride is not supported");
    TORCH_CHECK(found.dilation[i] > 0, "dilation should be greater than zero");
  }
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

// at::convolution checks these for whoever comes through it.
void check_channels(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                    bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  TORCH_CHECK(weight.dim() == input.dim(), "Expected ", input.dim(), "-dimensional weight for ",
              input.dim(), "-dimensional input ", input.sizes(), ", but got ", weight.sizes());
  const int64_t taken = transposed ? weight.size(0) : weight.size(1) * groups;
  const int64_t given = transposed ? weight.size(1) * groups : weight.size(0);
  TORCH_CHECK(input.size(1) == taken && weight.size(0) % groups == 0, "Given groups=", groups,
              ", weight of size ", weight.sizes(), ", expected input", input.sizes(), " to have ",
              taken, " channels, but got ", input.size(1), " channels instead");
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == given),
              "Given weight of size ", weight.sizes(), ", expected bias to be 1-dimensional with ",
              given, " elements");
  TORCH_CHECK(!transposed || static_cast<int64_t>(output_padding.size()) == input.dim() - 2 ||
                  output_padding.size() == 1,
              "expected output_padding for ", input.dim() - 2, " dimensions, but got ",
              output_padding);
}

// Numbers of the spatial dimensions, as the CPU names them: " kernel_height: 3 kernel_width: 0".
std::string named(const std::string& what, at::IntArrayRef numbers) {
  static const char* const kNames[] = {"depth", "height", "width"};
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += " " + what + "_" + kNames[i + 3 - numbers.size()] + ": " + std::to_string(numbers[i]);
  }
  return text;
}

void check_kernel(const at::Tensor& weight, bool transposed) {
  const at::IntArrayRef kernel = weight.sizes().slice(2);
  TORCH_CHECK(std::ranges::all_of(kernel, [](int64_t size) { return size > 0; }),
              "kernel size should be greater than zero, but got", named("kernel", kernel));
  TORCH_CHECK(!transposed || weight.size(1) > 0, "non-empty 2D or ", weight.dim(),
              "D weight tensor expected, but got: ", weight.sizes());
}

// What is left of the transposed convolution's arguments when its lists have one number for each
// dimension.
void check_transposed(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                      at::IntArrayRef padding, at::IntArrayRef output_padding,
                      at::IntArrayRef dilation) {
  for (size_t i = 0; i < stride.size(); ++i) {
    TORCH_CHECK(output_padding[i] < stride[i] || output_padding[i] < dilation[i],
                "output padding must be smaller than either stride or dilation, but got",
                named("output_padding", output_padding), named("stride", stride),
                named("dilation", dilation));
    const auto d = static_cast<int64_t>(i) + 2;
    const double size = static_cast<double>(input.size(d) - 1) * static_cast<double>(stride[i]) +
                        static_cast<double>(weight.size(d) - 1) * static_cast<double>(dilation[i]) +
                        static_cast<double>(output_padding[i]) -
                        2 * static_cast<double>(padding[i]);
    TORCH_CHECK(std::abs(size) < 0x1p62, "expected a result of fewer than 2^62 elements, but got",
                named("input", input.sizes().slice(2)), named("kernel", weight.sizes().slice(2)),
                named("stride", stride), named("dilation", dilation),
                ". Please give a smaller stride or dilation.");
  }
}

std::vector<int64_t> output_sizes(const at::Tensor& input, const at::Tensor& weight,
                                  const ConvolutionParameters& parameters,
                                  at::IntArrayRef output_padding) {
  check_kernel(weight, parameters.transposed);
  const auto rank = static_cast<size_t>(input.dim() - 2);
  const at::IntArrayRef stride(parameters.stride, rank), padding(parameters.padding, rank),
      dilation(parameters.dilation, rank);
  if (!parameters.transposed) {
    return native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  }
  const at::DimVector one(rank, output_padding[0]);
  const at::IntArrayRef more = output_padding.size() == 1 ? at::IntArrayRef(one) : output_padding;
  check_transposed(input, weight, stride, padding, more, dilation);
  return native::conv_input_size(input.sizes(), weight.sizes(), padding, more, stride, dilation,
                                 parameters.groups);
}

[[noreturn]] void refuse(const std::string& kernel, const at::Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, '"', kernel, "\" not implemented for '", input.scalar_type(),
                              "'");
  throw std::logic_error(kernel);
}

// What the CPU has no kernel for, with its words. Complex numbers come here as their parts.
void check_forward(const at::Tensor& input, const ConvolutionParameters& parameters) {
  const at::ScalarType type = input.scalar_type();
  if (at::isFloatingType(type) || type == at::kLong) return;
  const bool volumes = input.dim() == 5;
  const bool dilated = std::ranges::any_of(parameters.dilation, [](int64_t by) { return by != 1; });
  if (parameters.transposed) {
    refuse(volumes ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu", input);
  }
  if (dilated) refuse("slow_conv_dilated<>", input);
  if (type == at::kBool || at::isComplexType(type)) {
    refuse(volumes ? "compute_columns3d" : "slow_conv2d_cpu", input);
  }
}

void check_backward(const at::Tensor& input, bool transposed, const std::array<bool, 3>& mask) {
  if (at::isFloatingType(input.scalar_type()) || !(mask[0] || mask[1])) return;
  const std::string rank = input.dim() == 5 ? "3d" : "2d";
  if (transposed) refuse("slow_conv_transpose" + rank + "_backward_out_cpu", input);
  refuse("slow_conv" + rank + (mask[0] ? "_cpu_grad_input" : "_cpu_grad_weight"), input);
}

}  // namespace

at::Tensor GRAFT_OPERATOR(convolution_overrideable)(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups) {
  check_types(input, weight, or_undefined(bias));
  const auto parameters =
      parameters_of(stride, padding, dilation, transposed, groups, input.dim() - 2);
  check_channels(input, weight, or_undefined(bias), transposed, output_padding, groups);
  const auto sizes = output_sizes(input, weight, parameters, output_padding);
  at::Tensor output = at::empty(sizes, input.options().memory_format(format_of(input, weight)));
  if (output.numel() == 0) return output;
  check_forward(input, parameters);
  const at::Tensor dense = contiguous(bias);
  const OptionalView bias_view(dense);
  convolution(stream_of(input), view_of(output), view_of(input), view_of(weight), bias_view.get(),
              parameters);
  return output;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(convolution_backward_overrideable)(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> output_mask) {
  check_types(input, weight, grad_output);
  check_backward(input, transposed, output_mask);
  const auto parameters =
      parameters_of(stride, padding, dilation, transposed, groups, input.dim() - 2);
  check_channels(input, weight, {}, transposed, output_padding, groups);
  const auto sizes = output_sizes(input, weight, parameters, output_padding);
  TORCH_CHECK(grad_output.sizes() == at::IntArrayRef(sizes), "expected grad_output of the size ",
              at::IntArrayRef(sizes), ", but got ", grad_output.sizes());
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
