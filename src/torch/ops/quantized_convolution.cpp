// src/torch/ops/quantized_convolution.cpp: convolutions with int8 weights, on quantized and on
// float inputs.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <string>

#include "kernels/convolution/convolution.h"
#include "torch/dispatch/custom_op.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/ops/packed_weight.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/convolution.h"
#include "torch/version/ops/quantization.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Sizes = std::vector<int64_t>;
using Numbers = torch::List<int64_t>;

// How a convolution moves over its input; each list has one number for each spatial dimension.
struct Steps {
  Sizes stride, padding, output_padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
};

template <int rank>
class ConvolutionWeight final : public ConvPackedParamsBase<rank> {
 public:
  using Base = ConvPackedParamsBase<rank>;

  ConvolutionWeight(const at::Tensor& weight, const Optional& bias, Steps steps)
      : steps_(std::move(steps)), weight_(PackedWeight::of(checked(weight), bias, transpose())) {
    const int64_t outs = weight_.outputs(transpose()) * (transpose() ? groups() : 1);
    TORCH_CHECK(!weight_.bias.has_value() || weight_.bias->size(0) == outs, "bias should have ",
                outs, " elements, got ", weight_.bias->size(0));
  }

  static c10::intrusive_ptr<ConvolutionWeight> from(Base& other, c10::Device device) {
    const auto [weight, bias] = other.unpack();
    return c10::make_intrusive<ConvolutionWeight>(
        weight.to(device), bias,
        Steps{other.stride().vec(), other.padding().vec(), other.output_padding().vec(),
              other.dilation().vec(), other.groups(), other.transpose()});
  }

  c10::Device device() const { return weight_.quantized.device(); }

  at::Tensor apply(const at::Tensor& input, double scale, int64_t zero) override {
    if (input.is_cpu()) return host().apply(input, scale, zero);
    return statically(input, scale, zero, false);
  }
  at::Tensor apply_relu(const at::Tensor& input, double scale, int64_t zero) override {
    if (input.is_cpu()) return host().apply_relu(input, scale, zero);
    return statically(input, scale, zero, true);
  }
  at::Tensor apply_dynamic(const at::Tensor& input, bool reduce_range) override {
    if (input.is_cpu()) return host().apply_dynamic(input, reduce_range);
    return dynamically(input, reduce_range);
  }

  std::tuple<at::Tensor, Optional> unpack() override { return weight_.unpack(); }
  Numbers stride() const override { return Numbers(steps_.stride); }
  Numbers padding() const override { return Numbers(steps_.padding); }
  Numbers output_padding() const override { return Numbers(steps_.output_padding); }
  Numbers dilation() const override { return Numbers(steps_.dilation); }
  int64_t groups() const override { return steps_.groups; }
  bool transpose() const override { return steps_.transposed; }

 private:
  at::Tensor checked(const at::Tensor& weight) const {
    TORCH_CHECK(weight.dim() == rank + 2, "quantized::conv", rank, "d: the weight should have ",
                rank + 2, " dimensions, got ", weight.sizes());
    for (const Sizes* list : {&steps_.stride, &steps_.padding, &steps_.dilation}) {
      TORCH_CHECK(list->size() == rank, "quantized::conv", rank, "d: expected ", rank,
                  " numbers in stride, padding and dilation, got ", list->size());
    }
    return weight.contiguous();
  }

  // PyTorch's own kernels run on the CPU where one of them has no counterpart here.
  Base& host() {
    const std::lock_guard lock(host_mutex_);
    if (!host_) {
      const std::string kind = steps_.transposed ? "conv_transpose" : "conv";
      const auto prepack = c10::Dispatcher::singleton().findSchemaOrThrow(
          ("quantized::" + kind + std::to_string(rank) + "d_prepack").c_str(), "");
      const auto [weight, bias] = unpack();
      torch::jit::Stack stack{weight, bias, stride(), padding()};
      if (steps_.transposed) torch::jit::push(stack, output_padding());
      torch::jit::push(stack, dilation(), groups());
      prepack.callBoxed(&stack);
      host_ = stack.front().toCustomClass<Base>();
    }
    return *host_;
  }

  void check_input(const at::Tensor& input) const {
    TORCH_CHECK(input.device() == device(),
                "Expected all tensors to be on the same device, but "
                "got an input on ",
                input.device(), " and a packed weight on ", device());
    const int64_t channels =
        transpose() ? weight_.quantized.size(0) : weight_.quantized.size(1) * groups();
    TORCH_CHECK(input.dim() == rank + 2 && input.size(1) == channels, "quantized::conv", rank,
                "d: expected an input of ", rank + 2, " dimensions and ", channels,
                " channels, got ", input.sizes());
  }

  // What the library is fastest with.
  at::Tensor laid_out(const at::Tensor& input) const {
    const auto last = rank == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    const bool wanted = prefers_channels_last(stream_of(input).device(), GRAFT_FLOAT32);
    return wanted ? input.contiguous(last) : input;
  }

  // With a border of number in the place of the padding: of integers, 0 is their zero point.
  at::Tensor bordered(const at::Tensor& input, int64_t number) const {
    Sizes border;
    for (int d = rank - 1; d >= 0; --d) border.insert(border.end(), 2, steps_.padding[d]);
    return at::constant_pad_nd(input, border, number);
  }
  bool padded() const {
    return std::any_of(steps_.padding.begin(), steps_.padding.end(), [](auto n) { return n > 0; });
  }

  // integers times the weight, plus offsets [out] where they are defined.
  at::Tensor sums(const at::Tensor& integers, const at::Tensor& offsets, bool bordered) const {
    ConvolutionParameters parameters;
    for (int d = 0; d < rank; ++d) {
      parameters.stride[d] = steps_.stride[d];
      parameters.padding[d] = bordered ? 0 : steps_.padding[d];
      parameters.dilation[d] = steps_.dilation[d];
    }
    parameters.groups = groups();
    parameters.transposed = transpose();
    const Sizes padding = bordered ? Sizes(rank, 0) : steps_.padding;
    const at::IntArrayRef weight = weight_.values.sizes();
    const auto sizes = transpose() ? native::conv_input_size(integers.sizes(), weight, padding,
                                                             steps_.output_padding, steps_.stride,
                                                             steps_.dilation, groups())
                                   : native::conv_output_size(integers.sizes(), weight, padding,
                                                              steps_.stride, steps_.dilation);
    at::Tensor result = at::empty(
        sizes, integers.options().dtype(at::kInt).memory_format(integers.suggest_memory_format()));
    if (result.numel() == 0) return result;
    const OptionalView bias(offsets);
    convolution(stream_of(result), view_of(result), view_of(integers), view_of(weight_.values),
                bias.get(), parameters);
    return result;
  }

  at::Tensor statically(const at::Tensor& input, double scale, int64_t zero, bool relu) const {
    check_input(input);
    const at::ScalarType type = input.scalar_type();
    TORCH_CHECK(input.is_quantized() && input.qscheme() == at::kPerTensorAffine &&
                    (type == at::kQUInt8 || type == at::kQInt8),
                "quantized::conv", rank,
                "d: expected an input of torch.quint8 or torch.qint8 "
                "with one scale and one zero point, got ",
                input.toString());
    const int64_t from = input.q_zero_point();
    const at::Tensor integers = laid_out(integers_of(input));
    at::Tensor products;
    if (from == 0) {
      products = sums(integers, {}, false);
    } else if (transpose()) {
      products = sums(integers.to(at::kShort).sub_(from), {}, false);
    } else {
      const bool border = padded();
      products = sums(border ? bordered(integers, from) : integers, at::mul(weight_.offsets, from),
                      border);
    }
    return requantized(products, 1, weight_, input.q_scale(), type, scale, zero, relu);
  }

  at::Tensor dynamically(const at::Tensor& input, bool reduce_range) const {
    check_input(input);
    TORCH_CHECK(input.scalar_type() == at::kFloat, "quantized::conv", rank,
                "d_dynamic: expected an input of torch.float32, got ", input.dtype());
    TORCH_CHECK(input.numel() > 0, "quantized::conv", rank, "d_dynamic: the input is empty");
    const bool border = !transpose() && padded();
    // A border of 0 quantizes to the zero point, which only the device knows.
    const at::Tensor numbers = border ? bordered(laid_out(input), 0) : laid_out(input);
    const DynamicInput chosen(numbers, reduce_range);
    const at::Tensor products =
        transpose() ? sums(chosen.integers.to(at::kShort).sub_(chosen.zero), {}, false)
                    : sums(chosen.integers, at::mul(weight_.offsets, chosen.zero), border);
    return rescaled(products, 1, weight_, chosen.scale, false);
  }

  Steps steps_;
  PackedWeight weight_;
  std::mutex host_mutex_;
  c10::intrusive_ptr<Base> host_;
};

template <int rank>
using Pointer = c10::intrusive_ptr<ConvPackedParamsBase<rank>>;

template <int rank>
c10::intrusive_ptr<ConvolutionWeight<rank>> on_device(const Pointer<rank>& weight,
                                                      const at::Tensor& input) {
  return Converted<ConvolutionWeight<rank>, ConvPackedParamsBase<rank>>::find(weight,
                                                                              input.device());
}

template <int rank>
Pointer<rank> prepack(const at::Tensor& weight, const Optional& bias, Sizes stride, Sizes padding,
                      Sizes dilation, int64_t groups) {
  return c10::make_intrusive<ConvolutionWeight<rank>>(
      weight, bias,
      Steps{std::move(stride), std::move(padding), Sizes(rank, 0), std::move(dilation), groups,
            false});
}

template <int rank>
Pointer<rank> prepack_transposed(const at::Tensor& weight, const Optional& bias, Sizes stride,
                                 Sizes padding, Sizes output_padding, Sizes dilation,
                                 int64_t groups) {
  return c10::make_intrusive<ConvolutionWeight<rank>>(
      weight, bias,
      Steps{std::move(stride), std::move(padding), std::move(output_padding), std::move(dilation),
            groups, true});
}

// Lines are images of one row.
Sizes image(const Sizes& line, int64_t neutral) { return {neutral, line.back()}; }

Pointer<2> prepack1d(const at::Tensor& weight, const Optional& bias, Sizes stride, Sizes padding,
                     Sizes dilation, int64_t groups) {
  return prepack<2>(weight.unsqueeze(2), bias, image(stride, 1), image(padding, 0),
                    image(dilation, 1), groups);
}

Pointer<2> prepack_transposed1d(const at::Tensor& weight, const Optional& bias, Sizes stride,
                                Sizes padding, Sizes output_padding, Sizes dilation,
                                int64_t groups) {
  return prepack_transposed<2>(weight.unsqueeze(2), bias, image(stride, 1), image(padding, 0),
                               image(output_padding, 0), image(dilation, 1), groups);
}

template <int rank, bool relu>
at::Tensor conv(const at::Tensor& input, const Pointer<rank>& weight, double scale, int64_t zero) {
  const auto own = on_device<rank>(weight, input);
  return relu ? own->apply_relu(input, scale, zero) : own->apply(input, scale, zero);
}

// Of old models; the packed weight knows its own parameters.
template <int rank, bool relu>
at::Tensor conv_with_parameters(const at::Tensor& input, const Pointer<rank>& weight, Sizes, Sizes,
                                Sizes, int64_t, double scale, int64_t zero) {
  return conv<rank, relu>(input, weight, scale, zero);
}

template <int rank>
at::Tensor conv_dynamic(const at::Tensor& input, const Pointer<rank>& weight, bool reduce_range) {
  return on_device<rank>(weight, input)->apply_dynamic(input, reduce_range);
}

template <bool relu>
at::Tensor conv1d(const at::Tensor& input, const Pointer<2>& weight, double scale, int64_t zero) {
  return conv<2, relu>(input.unsqueeze(2), weight, scale, zero).squeeze(2);
}

at::Tensor conv1d_dynamic(const at::Tensor& input, const Pointer<2>& weight, bool reduce_range) {
  return conv_dynamic<2>(input.unsqueeze(2), weight, reduce_range).squeeze(2);
}

}  // namespace

TORCH_LIBRARY_IMPL(quantized, GRAFT_QUANTIZED_KEY, m) {
  implement_custom<CustomOp<"quantized::conv_prepack">, &prepack<2>>(m);
  implement_custom<CustomOp<"quantized::conv1d_prepack">, &prepack1d>(m);
  implement_custom<CustomOp<"quantized::conv2d_prepack">, &prepack<2>>(m);
  implement_custom<CustomOp<"quantized::conv3d_prepack">, &prepack<3>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose1d_prepack">, &prepack_transposed1d>(m);
  implement_custom<CustomOp<"quantized::conv_transpose2d_prepack">, &prepack_transposed<2>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose3d_prepack">, &prepack_transposed<3>>(m);
  implement_custom<CustomOp<"quantized::conv1d">, &conv1d<false>>(m);
  implement_custom<CustomOp<"quantized::conv1d_relu">, &conv1d<true>>(m);
  implement_custom<CustomOp<"quantized::conv2d", "new">, &conv<2, false>>(m);
  implement_custom<CustomOp<"quantized::conv2d_relu", "new">, &conv<2, true>>(m);
  implement_custom<CustomOp<"quantized::conv3d", "new">, &conv<3, false>>(m);
  implement_custom<CustomOp<"quantized::conv3d_relu", "new">, &conv<3, true>>(m);
  implement_custom<CustomOp<"quantized::conv2d">, &conv_with_parameters<2, false>>(m);
  implement_custom<CustomOp<"quantized::conv2d_relu">, &conv_with_parameters<2, true>>(m);
  implement_custom<CustomOp<"quantized::conv3d">, &conv_with_parameters<3, false>>(m);
  implement_custom<CustomOp<"quantized::conv3d_relu">, &conv_with_parameters<3, true>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose1d">, &conv1d<false>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose2d">, &conv<2, false>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose3d">, &conv<3, false>>(m);
}

TORCH_LIBRARY_IMPL(quantized, GRAFT_DISPATCH_KEY, m) {
  implement_custom<CustomOp<"quantized::conv1d_dynamic">, &conv1d_dynamic>(m);
  implement_custom<CustomOp<"quantized::conv2d_dynamic">, &conv_dynamic<2>>(m);
  implement_custom<CustomOp<"quantized::conv3d_dynamic">, &conv_dynamic<3>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose1d_dynamic">, &conv1d_dynamic>(m);
  implement_custom<CustomOp<"quantized::conv_transpose2d_dynamic">, &conv_dynamic<2>>(m);
  implement_custom<CustomOp<"quantized::conv_transpose3d_dynamic">, &conv_dynamic<3>>(m);
}

}  // namespace graft::binding
