// src/torch/dispatch/host_operators.cpp: operators of the fallback that PyTorch's CPU lacks, or has
// otherwise.
#include "torch/dispatch/host_operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_sigmoid_backward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "torch/tensor/operands.h"
#include "torch/tensor/opmath.h"

namespace graft::binding {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// The gates of a cell, or what its forward pass kept, which lie side by side in each row.
std::vector<Tensor> parts(const Tensor& rows, int64_t count) {
  TORCH_CHECK(rows.layout() == at::kStrided && rows.dim() == 2 && rows.size(1) % count == 0 &&
                  rows.size(1) > 0,
              "expected dense rows of ", count, " parts, got ", rows.sizes());
  return rows.chunk(count, 1);
}

Tensor with_bias(const Tensor& gates, const Optional& bias) {
  const Tensor given = or_undefined(bias);
  return given.defined() ? widened(gates) + widened(given) : widened(gates);
}

// The derivatives of sigmoid and tanh from their values.
Tensor sigmoid_slope(const Tensor& y) { return y * (1 - y); }
Tensor tanh_slope(const Tensor& y) { return 1 - y * y; }

Three lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                const Optional& input_bias, const Optional& hidden_bias) {
  const auto gates =
      parts(with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias), 4);
  const Tensor in = at::sigmoid(gates[0]), forget = at::sigmoid(gates[1]);
  const Tensor cell = at::tanh(gates[2]), out = at::sigmoid(gates[3]);
  const Tensor cy = forget * widened(cx) + in * cell, hy = out * at::tanh(cy);
  const at::ScalarType type = cx.scalar_type();
  return {hy.to(type), cy.to(type), at::cat({in, forget, cell, out}, 1).to(type)};
}

Three lstm_cell_backward(const Optional& grad_hy, const Optional& grad_cy, const Tensor& cx,
                         const Tensor& cy, const Tensor& workspace, bool has_bias) {
  const auto gates = parts(widened(workspace), 4);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor squashed = at::tanh(widened(cy));
  const Tensor from_hidden = or_undefined(grad_hy), from_cell = or_undefined(grad_cy);
  const Tensor hidden = from_hidden.defined() ? widened(from_hidden) : at::zeros_like(squashed);
  Tensor total = hidden * out * tanh_slope(squashed);
  if (from_cell.defined()) total = total + widened(from_cell);
  const at::ScalarType type = cx.scalar_type();
  const Tensor to_gates =
      at::cat({total * cell * sigmoid_slope(in), total * widened(cx) * sigmoid_slope(forget),
               total * in * tanh_slope(cell), hidden * squashed * sigmoid_slope(out)},
              1)
          .to(type);
  return {to_gates, (total * forget).to(type), has_bias ? to_gates.sum(0) : Tensor()};
}

Two gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
             const Optional& input_bias, const Optional& hidden_bias) {
  const auto inputs = parts(with_bias(input_gates, input_bias), 3);
  const auto hiddens = parts(with_bias(hidden_gates, hidden_bias), 3);
  const Tensor reset = at::sigmoid(inputs[0] + hiddens[0]);
  const Tensor update = at::sigmoid(inputs[1] + hiddens[1]);
  const Tensor fresh = at::tanh(inputs[2] + reset * hiddens[2]), before = widened(hx);
  const at::ScalarType type = hx.scalar_type();
  return {(fresh + update * (before - fresh)).to(type),
          at::cat({reset, update, fresh, before, hiddens[2]}, 1).to(type)};
}

Five gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto kept = parts(widened(workspace), 5);
  const Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &before = kept[3];
  const Tensor above = widened(grad_hy);
  const Tensor to_update = above * (before - fresh) * sigmoid_slope(update);
  const Tensor to_fresh = above * (1 - update) * tanh_slope(fresh);
  const Tensor to_reset = to_fresh * kept[4] * sigmoid_slope(reset);
  const at::ScalarType type = grad_hy.scalar_type();
  const Tensor to_inputs = at::cat({to_reset, to_update, to_fresh}, 1).to(type);
  const Tensor to_hiddens = at::cat({to_reset, to_update, to_fresh * reset}, 1).to(type);
  return {to_inputs, to_hiddens, (above * update).to(type), has_bias ? to_inputs.sum(0) : Tensor(),
          has_bias ? to_hiddens.sum(0) : Tensor()};
}

// The CPU reads a buffer that the device's forward leaves out.
Tensor& log_sigmoid_gradient_out(const Tensor& grad_output, const Tensor& self, const Tensor&,
                                 Tensor& grad_input) {
  return at::log_sigmoid_backward_out(grad_input, grad_output, self, self.abs().neg_().exp_());
}

Tensor log_sigmoid_gradient(const Tensor& grad_output, const Tensor& self, const Tensor&) {
  return at::log_sigmoid_backward(grad_output, self, self.abs().neg_().exp_());
}

// All dimensions but that of the channels.
std::vector<int64_t> around_channels(const Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t i = 2; i < input.dim(); ++i) dims.push_back(i);
  return dims;
}

// One number for each channel, to be broadcast over images [n, c, ...].
Tensor by_channel(const Tensor& numbers, const Tensor& input) {
  TORCH_CHECK_INDEX(input.dim() >= 2, "expected images of 2 dimensions or more, got ", input.dim());
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  return widened(numbers).view(shape);
}

Two channel_statistics(const Tensor& input, double eps) {
  const auto [variance, mean] = at::var_mean(widened(input), around_channels(input), 0, false);
  return {mean, (variance + eps).rsqrt()};
}

Tensor normalized(const Tensor& input, const Optional& weight, const Optional& bias,
                  const Tensor& mean, const Tensor& invstd, double) {
  const Tensor factor = or_undefined(weight), shift = or_undefined(bias);
  Tensor output = (widened(input) - by_channel(mean, input)) * by_channel(invstd, input);
  if (factor.defined()) output = output * by_channel(factor, input);
  if (shift.defined()) output = output + by_channel(shift, input);
  return output.to(input.scalar_type());
}

Tensor& normalized_out(const Tensor& input, const Optional& weight, const Optional& bias,
                       const Tensor& mean, const Tensor& invstd, double eps, Tensor& out) {
  return out.copy_(normalized(input, weight, bias, mean, invstd, eps));
}

Four channel_sums(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                  const Tensor& invstd, const Optional& weight, bool input_g, bool weight_g,
                  bool bias_g) {
  const auto dims = around_channels(input);
  const Tensor gradient = widened(grad_out), centred = widened(input) - by_channel(mean, input);
  const Tensor sum = gradient.sum(dims), along = (gradient * centred).sum(dims);
  const Tensor parameter = or_undefined(weight);
  const at::ScalarType type = parameter.defined() ? parameter.scalar_type() : sum.scalar_type();
  return {input_g ? sum : Tensor(), input_g ? along : Tensor(),
          weight_g ? (along * widened(invstd)).to(type) : Tensor(),
          bias_g ? sum.to(type, /*non_blocking=*/false, /*copy=*/true) : Tensor()};
}

Tensor normalized_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                           const Tensor& invstd, const Optional& weight, const Tensor& sum_dy,
                           const Tensor& sum_dy_xmu, const Tensor& count) {
  const Tensor total = widened(count.sum()), spread = by_channel(invstd, input);
  const Tensor parameter = or_undefined(weight);
  const Tensor factor = parameter.defined() ? by_channel(parameter, input) * spread : spread;
  const Tensor centred = widened(input) - by_channel(mean, input);
  const Tensor slope = spread * spread * by_channel(sum_dy_xmu, input) / total;
  const Tensor shift = by_channel(sum_dy, input) / total;
  return (factor * (widened(grad_out) - centred * slope - shift)).to(input.scalar_type());
}

#define GRAFT_HOST_OPERATORS(OPERATOR)                                        \
  OPERATOR("aten::_thnn_fused_lstm_cell", lstm_cell)                          \
  OPERATOR("aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward)   \
  OPERATOR("aten::_thnn_fused_gru_cell", gru_cell)                            \
  OPERATOR("aten::_thnn_fused_gru_cell_backward", gru_cell_backward)          \
  OPERATOR("aten::log_sigmoid_backward", log_sigmoid_gradient)                \
  OPERATOR("aten::log_sigmoid_backward.grad_input", log_sigmoid_gradient_out) \
  OPERATOR("aten::batch_norm_stats", channel_statistics)                      \
  OPERATOR("aten::batch_norm_elemt", normalized)                              \
  OPERATOR("aten::batch_norm_elemt.out", normalized_out)                      \
  OPERATOR("aten::batch_norm_backward_reduce", channel_sums)                  \
  OPERATOR("aten::batch_norm_backward_elemt", normalized_backward)

}  // namespace

const c10::KernelFunction* host_operator(const c10::OperatorName& name) {
#define GRAFT_ROW(name, function) \
  {name, c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN((function)))},
  static const auto& operators =
      *new std::unordered_map<std::string, c10::KernelFunction>{GRAFT_HOST_OPERATORS(GRAFT_ROW)};
#undef GRAFT_ROW
  const auto found = operators.find(c10::toString(name));
  return found == operators.end() ? nullptr : &found->second;
}

}  // namespace graft::binding
