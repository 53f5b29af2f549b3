// src/torch/ops/batch_norm.cpp: batch normalisation and its gradients, in every overload of
// PyTorch.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "kernels/norm/normalization.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Statistics have the parameters' dtype; half images without parameters keep float statistics.
at::ScalarType statistics_type(const at::Tensor& input, const at::Tensor& weight,
                               const at::Tensor& running_mean) {
  if (weight.defined()) return weight.scalar_type();
  if (running_mean.defined()) return running_mean.scalar_type();
  return input.scalar_type();
}

// Gives what a kernel wrote to the tensor that contiguous() stood for.
void write_back(const at::Tensor& channels, const at::Tensor& dense) {
  if (!channels.is_same(dense)) channels.copy_(dense);
}

// Upstream's kernels trust their callers: with fewer elements they read what is not theirs.
void check_channels(const at::Tensor& input, const char* name, const at::Tensor& vector,
                    bool accessed = false) {
  TORCH_CHECK(input.dim() >= 2, "expected at least 2 dimensions, but got input of ", input.sizes());
  const int64_t channels = input.size(1);
  if (!vector.defined()) return;
  TORCH_CHECK(!accessed || vector.dim() == 1, "TensorAccessor expected 1 dims but tensor has ",
              vector.dim());
  TORCH_CHECK(vector.numel() == channels, name, " should contain ", channels, " elements not ",
              vector.numel());
}

Three forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
              const at::Tensor& running_mean, const at::Tensor& running_var, bool training,
              double momentum, double epsilon) {
  TORCH_CHECK_VALUE(running_mean.defined() == running_var.defined(),
                    "running_mean and running_var must either both be None or neither be None");
  check_channels(input, "weight", weight);
  check_channels(input, "bias", bias);
  check_channels(input, "running_mean", running_mean, true);
  check_channels(input, "running_var", running_var, true);
  require_floating(input);
  require_parameters(input, {&weight, &bias, &running_mean, &running_var});
  TORCH_CHECK(!training || input.numel() > 0,
              "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  const at::MemoryFormat format = image_format(input);
  const at::Tensor images = input.contiguous(format);
  at::Tensor output = at::empty(images.sizes(), images.options().memory_format(format));
  const auto options = input.options().dtype(statistics_type(input, weight, running_mean));
  const int64_t saved = training ? input.size(1) : 0;
  at::Tensor mean = at::empty({saved}, options), invstd = at::empty({saved}, options);
  if (output.numel() == 0) return {output, mean.zero_(), invstd.zero_()};
  const at::Tensor dense_weight = contiguous(weight), dense_bias = contiguous(bias);
  const at::Tensor dense_mean = contiguous(running_mean), dense_var = contiguous(running_var);
  const OptionalView weight_view(dense_weight), bias_view(dense_bias), mean_view(dense_mean),
      variance_view(dense_var);
  if (training) {
    batch_norm_train(stream_of(input), view_of(output), view_of(mean), view_of(invstd),
                     mean_view.get(), variance_view.get(), view_of(images), weight_view.get(),
                     bias_view.get(), momentum, epsilon);
    write_back(running_mean, dense_mean);
    write_back(running_var, dense_var);
  } else {
    TORCH_CHECK(mean_view.get() != nullptr && variance_view.get() != nullptr,
                "batch_norm without training expects running_mean and running_var");
    batch_norm_inference(stream_of(input), view_of(output), view_of(images), weight_view.get(),
                         bias_view.get(), *mean_view.get(), *variance_view.get(), epsilon);
  }
  return {output, mean, invstd};
}

}  // namespace

Three GRAFT_OPERATOR(native_batch_norm)(const at::Tensor& input, const Optional& weight,
                                        const Optional& bias, const Optional& running_mean,
                                        const Optional& running_var, bool training, double momentum,
                                        double eps) {
  return forward(input, or_undefined(weight), or_undefined(bias), or_undefined(running_mean),
                 or_undefined(running_var), training, momentum, eps);
}

Three GRAFT_OPERATOR(_native_batch_norm_legit)(const at::Tensor& input, const Optional& weight,
                                               const Optional& bias, at::Tensor& running_mean,
                                               at::Tensor& running_var, bool training,
                                               double momentum, double eps) {
  return forward(input, or_undefined(weight), or_undefined(bias), running_mean, running_var,
                 training, momentum, eps);
}

Three GRAFT_OPERATOR(_native_batch_norm_legit_no_stats)(const at::Tensor& input,
                                                        const Optional& weight,
                                                        const Optional& bias, bool training,
                                                        double momentum, double eps) {
  return forward(input, or_undefined(weight), or_undefined(bias), {}, {}, training, momentum, eps);
}

Four GRAFT_OPERATOR(_batch_norm_with_update)(const at::Tensor& input, const Optional& weight,
                                             const Optional& bias, at::Tensor& running_mean,
                                             at::Tensor& running_var, double momentum, double eps) {
  auto [output, mean, invstd] = forward(input, or_undefined(weight), or_undefined(bias),
                                        running_mean, running_var, true, momentum, eps);
  const at::Tensor reserve = at::empty({0}, input.options().dtype(at::kByte));
  return {output, mean, invstd, reserve};
}

Three GRAFT_OPERATOR(native_batch_norm_backward)(
    const at::Tensor& grad_out, const at::Tensor& input, const Optional& weight,
    const Optional& running_mean, const Optional& running_var, const Optional& save_mean,
    const Optional& save_invstd, bool train, double eps, std::array<bool, 3> output_mask) {
  const at::MemoryFormat format = image_format(input);
  const at::Tensor images = input.contiguous(format), gradient = grad_out.contiguous(format);
  const at::Tensor mean = contiguous(train ? save_mean : running_mean);
  const at::Tensor spread = contiguous(train ? save_invstd : running_var);
  const at::Tensor dense_weight = contiguous(weight);
  TORCH_CHECK(mean.defined() && spread.defined(), "batch_norm_backward expects the statistics ",
              train ? "that the forward saved" : "running_mean and running_var");
  check_channels(input, "weight", dense_weight);
  check_channels(input, "mean", mean);
  check_channels(input, "variance", spread);
  TORCH_CHECK(input.sizes() == grad_out.sizes(), "the gradient's sizes ", grad_out.sizes(),
              " are not the input's ", input.sizes());
  // After the sizes: the CPU's operator trusts them.
  require_floating(input);
  require_same_dtype(input, grad_out);
  const auto vector = input.options().dtype(mean.scalar_type());
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = at::empty_like(images);
  if (output_mask[1]) grad_weight = at::zeros({input.size(1)}, vector);
  if (output_mask[2]) grad_bias = at::zeros({input.size(1)}, vector);
  if (input.numel() == 0) return {grad_input, grad_weight, grad_bias};
  const OptionalView weight_view(dense_weight), to_input(grad_input), to_weight(grad_weight),
      to_bias(grad_bias);
  batch_norm_backward(stream_of(input), {to_input.get(), to_weight.get(), to_bias.get()},
                      view_of(gradient), view_of(images), weight_view.get(), view_of(mean),
                      view_of(spread), train, eps);
  return {grad_input, grad_weight, grad_bias};
}

Three GRAFT_OPERATOR(batch_norm_backward)(const at::Tensor& grad_out, const at::Tensor& input,
                                          const at::Tensor& weight, const Optional& running_mean,
                                          const Optional& running_var, const Optional& save_mean,
                                          const Optional& save_var, bool update, double eps,
                                          std::array<bool, 3> output_mask, const at::Tensor&) {
  return GRAFT_OPERATOR(native_batch_norm_backward)(grad_out, input, weight, running_mean,
                                                    running_var, save_mean, save_var, update, eps,
                                                    output_mask);
}

}  // namespace graft::binding
