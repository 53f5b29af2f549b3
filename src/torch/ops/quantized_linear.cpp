// src/torch/ops/quantized_linear.cpp: linear layers with int8 weights, on quantized and on float
// inputs.
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>

#include "kernels/matmul/matmul.h"
#include "torch/dispatch/custom_op.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/ops/packed_weight.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/quantization.h"

namespace graft::binding {
namespace {

using Base = LinearPackedParamsBase;
using BasePointer = c10::intrusive_ptr<Base>;
using Optional = std::optional<at::Tensor>;

class LinearWeight final : public Base {
 public:
  LinearWeight(const at::Tensor& weight, const Optional& bias)
      : weight_(PackedWeight::of(matrix(weight), bias)) {
    check_bias();
  }

  static c10::intrusive_ptr<LinearWeight> from(Base& other, c10::Device device) {
    const auto [weight, bias] = other.unpack();
    TORCH_CHECK(weight.is_quantized(), "a linear layer with weights of torch.", weight.dtype(),
                " does not run on ", device);
    return c10::make_intrusive<LinearWeight>(weight.to(device), bias);
  }

  c10::Device device() const { return weight_.quantized.device(); }

  at::Tensor apply(at::Tensor input, double scale, int64_t zero) override {
    if (input.is_cpu()) return host().apply(std::move(input), scale, zero);
    return statically(input, scale, zero, false);
  }
  at::Tensor apply_relu(at::Tensor input, double scale, int64_t zero) override {
    if (input.is_cpu()) return host().apply_relu(std::move(input), scale, zero);
    return statically(input, scale, zero, true);
  }
  at::Tensor apply_dynamic(at::Tensor input, bool reduce_range) override {
    if (input.is_cpu()) return host().apply_dynamic(std::move(input), reduce_range);
    return dynamically(input, reduce_range, false);
  }
  at::Tensor apply_dynamic_relu(at::Tensor input, bool reduce_range) override {
    if (input.is_cpu()) return host().apply_dynamic_relu(std::move(input), reduce_range);
    return dynamically(input, reduce_range, true);
  }

  std::tuple<at::Tensor, Optional> unpack() override { return weight_.unpack(); }
  Optional bias() override { return weight_.bias; }
  void set_bias(Optional bias) override {
    weight_ = PackedWeight::of(weight_.quantized, bias);
    check_bias();
    host_.reset();
  }

 private:
  static at::Tensor matrix(const at::Tensor& weight) {
    TORCH_CHECK(weight.dim() == 2, "quantized::linear_prepack: the weight should be 2-dimensional");
    return weight.contiguous();
  }

  void check_bias() const {
    TORCH_CHECK(!weight_.bias.has_value() || weight_.bias->size(0) == weight_.outputs(),
                "bias should have N elements: ", weight_.outputs(), ", got ",
                weight_.bias->size(0));
  }

  // PyTorch's own kernels run on the CPU where one of them has no counterpart here.
  Base& host() {
    const std::lock_guard lock(host_mutex_);
    if (!host_) {
      static const auto prepack =
          c10::Dispatcher::singleton().findSchemaOrThrow("quantized::linear_prepack", "");
      const auto [weight, bias] = unpack();
      torch::jit::Stack stack{weight, bias};
      prepack.callBoxed(&stack);
      host_ = stack.front().toCustomClass<Base>();
    }
    return *host_;
  }

  // [..., k] as [m, k].
  at::Tensor rows(const at::Tensor& input) const {
    const int64_t k = weight_.quantized.size(1);
    TORCH_CHECK(input.device() == device(),
                "Expected all tensors to be on the same device, but "
                "got an input on ",
                input.device(), " and a packed weight on ", device());
    TORCH_CHECK(input.dim() > 0 && input.size(-1) == k, "quantized::linear: expected an input of ",
                k, " columns, got ", input.sizes());
    return input.reshape({k == 0 ? c10::multiply_integers(input.sizes().slice(0, input.dim() - 1))
                                 : input.numel() / k,
                          k});
  }

  // integers (uint8 or int8) times the weight, less what their zero point adds.
  at::Tensor sums(const at::Tensor& integers, const at::Tensor& offsets) const {
    at::Tensor result =
        at::empty({integers.size(0), weight_.outputs()}, integers.options().dtype(at::kInt));
    if (result.numel() == 0) return result;
    MatmulEpilogue epilogue;
    TensorView addend;
    if (offsets.defined()) {
      addend = view_of(offsets.expand_as(result));
      epilogue.addend = &addend;
      epilogue.beta = 1;
    }
    matmul(stream_of(result), view_of(result), view_of(integers), view_of(weight_.values.t()),
           epilogue);
    return result;
  }

  at::Tensor in_shape_of(const at::Tensor& input, const at::Tensor& result) const {
    at::DimVector sizes(input.sizes());
    sizes.back() = weight_.outputs();
    return result.view(sizes);
  }

  at::Tensor statically(const at::Tensor& input, double scale, int64_t zero, bool relu) const {
    TORCH_CHECK(input.is_quantized() && input.qscheme() == at::kPerTensorAffine,
                "quantized::linear: expected an input with one scale and one zero point");
    const at::ScalarType type = input.scalar_type();
    TORCH_CHECK(type == at::kQUInt8 || type == at::kQInt8,
                "quantized::linear: expected an input of torch.quint8 or torch.qint8, got ", type);
    const int64_t from = input.q_zero_point();
    const at::Tensor offsets = from == 0 ? at::Tensor() : at::mul(weight_.offsets, from);
    const at::Tensor products = sums(rows(integers_of(input)), offsets);
    return requantized(in_shape_of(input, products), input.dim() - 1, weight_, input.q_scale(),
                       type, scale, zero, relu);
  }

  at::Tensor dynamically(const at::Tensor& input, bool reduce_range, bool relu) const {
    TORCH_CHECK(input.scalar_type() == at::kFloat,
                "quantized::linear_dynamic: expected an input of torch.float32, got ",
                input.dtype());
    const at::Tensor numbers = rows(input);
    if (numbers.numel() == 0) {
      return in_shape_of(input, at::empty({numbers.size(0), weight_.outputs()}, input.options()));
    }
    const DynamicInput chosen(numbers, reduce_range);
    const at::Tensor products = sums(chosen.integers, at::mul(weight_.offsets, chosen.zero));
    return in_shape_of(input, rescaled(products, 1, weight_, chosen.scale, relu));
  }

  PackedWeight weight_;
  std::mutex host_mutex_;
  BasePointer host_;
};

LinearWeight& on_device(const BasePointer& weight, const at::Tensor& input,
                        c10::intrusive_ptr<LinearWeight>& keep) {
  const Optional bias = weight->bias();
  const void* tag = bias.has_value() ? bias->unsafeGetTensorImpl() : nullptr;
  keep = Converted<LinearWeight, Base>::find(weight, input.device(), tag);
  return *keep;
}

BasePointer prepack_linear(at::Tensor weight, Optional bias) {
  return c10::make_intrusive<LinearWeight>(weight, bias);
}

template <bool relu>
at::Tensor linear(at::Tensor input, const BasePointer& weight, double scale, int64_t zero) {
  c10::intrusive_ptr<LinearWeight> keep;
  LinearWeight& own = on_device(weight, input, keep);
  return relu ? own.apply_relu(input, scale, zero) : own.apply(input, scale, zero);
}

template <bool relu>
at::Tensor linear_dynamic(at::Tensor input, const BasePointer& weight, bool reduce_range) {
  c10::intrusive_ptr<LinearWeight> keep;
  LinearWeight& own = on_device(weight, input, keep);
  return relu ? own.apply_dynamic_relu(input, reduce_range)
              : own.apply_dynamic(input, reduce_range);
}

}  // namespace

TORCH_LIBRARY_IMPL(quantized, GRAFT_QUANTIZED_KEY, m) {
  implement_custom<CustomOp<"quantized::linear_prepack">, &prepack_linear>(m);
  implement_custom<CustomOp<"quantized::linear">, &linear<false>>(m);
  implement_custom<CustomOp<"quantized::linear_relu">, &linear<true>>(m);
}

TORCH_LIBRARY_IMPL(quantized, GRAFT_DISPATCH_KEY, m) {
  implement_custom<CustomOp<"quantized::linear_dynamic">, &linear_dynamic<false>>(m);
  implement_custom<CustomOp<"quantized::linear_relu_dynamic">, &linear_dynamic<true>>(m);
}

}  // namespace graft::binding
