// src/torch/ops/layer_norm.cpp: layer normalisation and its gradients.
#include "torch/version/ops/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/norm/normalization.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// The mean of every row, in the dtype that is computed in.
at::Tensor statistics(const at::Tensor& input, at::IntArrayRef normalized_shape) {
  at::DimVector sizes(input.sizes().begin(), input.sizes().end());
  std::fill(sizes.end() - static_cast<int64_t>(normalized_shape.size()), sizes.end(), 1);
  const at::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::empty(sizes, input.options().dtype(type).memory_format(at::MemoryFormat::Contiguous));
}

}  // namespace

Three GRAFT_OPERATOR(native_layer_norm)(const at::Tensor& input, at::IntArrayRef normalized_shape,
                                        const Optional& weight, const Optional& bias, double eps) {
  const at::Tensor scale = contiguous(weight), shift = contiguous(bias);
  const auto [rows, n] = native::_check_layer_norm_inputs(input, normalized_shape, scale, shift);
  require_floating(input);
  require_parameters(input, {&scale, &shift});
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source), mean = statistics(input, normalized_shape),
             rstd = at::empty_like(mean);
  if (output.numel() == 0) return {output, mean.zero_(), rstd.zero_()};
  const OptionalView scale_view(scale), shift_view(shift);
  const TensorView mean_view = view_of(mean), rstd_view = view_of(rstd);
  layer_norm(stream_of(input), view_of(output), &mean_view, &rstd_view, view_of(source),
             scale_view.get(), shift_view.get(), rows, n, eps);
  return {output, mean, rstd};
}

Three GRAFT_OPERATOR(native_layer_norm_backward)(const at::Tensor& grad_out,
                                                 const at::Tensor& input,
                                                 at::IntArrayRef normalized_shape,
                                                 const at::Tensor& mean, const at::Tensor& rstd,
                                                 const Optional& weight, const Optional& bias,
                                                 std::array<bool, 3> output_mask) {
  const at::Tensor scale = contiguous(weight), shift = contiguous(bias);
  const auto [rows, n] = native::_check_layer_norm_inputs(input, normalized_shape, scale, shift);
  require_floating(input);
  require_same_dtype(input, grad_out);
  const at::Tensor source = input.contiguous(), gradient = grad_out.contiguous();
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = at::empty_like(source);
  if (output_mask[1] && scale.defined()) grad_weight = at::zeros_like(scale);
  if (output_mask[2] && shift.defined()) grad_bias = at::zeros_like(shift);
  if (input.numel() == 0) return {grad_input, grad_weight, grad_bias};
  const OptionalView scale_view(scale), to_input(grad_input), to_weight(grad_weight),
      to_bias(grad_bias);
  layer_norm_backward(stream_of(input), {to_input.get(), to_weight.get(), to_bias.get()},
                      view_of(gradient), view_of(source), view_of(mean), view_of(rstd),
                      scale_view.get(), rows, n);
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace graft::binding
