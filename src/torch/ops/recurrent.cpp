// src/torch/ops/recurrent.cpp: the cells of LSTM and GRU, and a check of packed sequences.
#include "kernels/training/recurrent.h"

#include <ATen/ops/_pack_padded_sequence_backward_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru_ops.h>
#include <ATen/ops/lstm_ops.h>
#include <ATen/ops/rnn_relu_ops.h>
#include <ATen/ops/rnn_tanh_ops.h>

#include <tuple>

#include "operators.h"
#include "torch/dispatch/composite.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;

// [n, parts * h] for states [n, h].
at::Tensor gates_of(const at::Tensor& state, int64_t parts) {
  return at::empty({state.size(0), parts * state.size(1)}, state.options());
}

at::Tensor row(const at::Tensor& state) { return at::empty(state.sizes(), state.options()); }

// Kernels trust the sizes: a row of the gates holds parts for each element of the state.
void check(const char* name, const at::Tensor& gates, const at::Tensor& state, int64_t parts) {
  TORCH_CHECK(state.dim() == 2 && gates.dim() == 2 && gates.size(0) == state.size(0) &&
                  gates.size(1) == parts * state.size(1) &&
                  gates.scalar_type() == state.scalar_type(),
              name, ": got gates ", gates.toString(), gates.sizes(), " for a state ",
              state.toString(), state.sizes(), "; give [n, ", parts, " h] for [n, h]");
}

void check_biases(const char* name, const at::Tensor& input, const at::Tensor& hidden,
                  const at::Tensor& gates) {
  for (const at::Tensor* bias : {&input, &hidden}) {
    TORCH_CHECK(!bias->defined() ||
                    (bias->numel() == gates.size(1) && bias->scalar_type() == gates.scalar_type()),
                name, ": got a bias ", bias->toString(), " for gates of ", gates.size(1),
                "; give one number of their dtype for each");
  }
}

// PyTorch's operator, which reads the argument at position place, the sizes of batches, on the
// host.
template <class Op, size_t place, class Schema = typename Op::schema>
struct ReadsBatchSizes;

template <class Op, size_t place, class Result, class... Arguments>
struct ReadsBatchSizes<Op, place, Result(Arguments...)> {
  static Result call(Arguments... arguments) {
    const at::Tensor& batch_sizes = std::get<place>(std::tie(arguments...));
    TORCH_CHECK_VALUE(batch_sizes.device().is_cpu(), Op::name,
                      ": batch_sizes should always be on CPU; got them on ", batch_sizes.device());
    return composite<Op>(arguments...);
  }
};

template <class Op, size_t place = 1>
void check_batch_sizes(torch::Library& m) {
  m.impl(qualified_name<Op>().c_str(), TORCH_FN((&ReadsBatchSizes<Op, place>::call)));
}

void check_packed_sequences(torch::Library& m) {
  check_batch_sizes<at::_ops::lstm_data>(m);
  check_batch_sizes<at::_ops::gru_data>(m);
  check_batch_sizes<at::_ops::rnn_tanh_data>(m);
  check_batch_sizes<at::_ops::rnn_relu_data>(m);
  check_batch_sizes<at::_ops::_pack_padded_sequence_backward, 2>(m);
}

}  // namespace

// Where autograd is off, as in inference mode, the first key is met, else the second.
TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) { check_packed_sequences(m); }
TORCH_LIBRARY_IMPL(aten, GRAFT_AUTOGRAD_KEY, m) { check_packed_sequences(m); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(_thnn_fused_lstm_cell)(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
    const Optional& input_bias, const Optional& hidden_bias) {
  const at::Tensor inputs = input_gates.contiguous(), hiddens = hidden_gates.contiguous(),
                   state = cx.contiguous();
  check("_thnn_fused_lstm_cell", inputs, state, 4);
  check("_thnn_fused_lstm_cell", hiddens, state, 4);
  const at::Tensor shift = contiguous(input_bias), hidden_shift = contiguous(hidden_bias);
  check_biases("_thnn_fused_lstm_cell", shift, hidden_shift, inputs);
  at::Tensor hy = row(state), cy = row(state), workspace = gates_of(state, 4);
  lstm_cell(stream_of(cx), view_of(hy), view_of(cy), view_of(workspace), view_of(inputs),
            view_of(hiddens), view_of(state), OptionalView(shift).get(),
            OptionalView(hidden_shift).get());
  return {hy, cy, workspace};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(_thnn_fused_lstm_cell_backward_impl)(
    const Optional& grad_hy, const Optional& grad_cy, const at::Tensor& cx, const at::Tensor& cy,
    const at::Tensor& workspace, bool has_bias) {
  const at::Tensor from_hidden = contiguous(grad_hy), from_cell = contiguous(grad_cy),
                   before = cx.contiguous(), after = cy.contiguous(), kept = workspace.contiguous();
  check("_thnn_fused_lstm_cell_backward_impl", kept, before, 4);
  at::Tensor grad_gates = gates_of(before, 4), grad_cx = row(before);
  lstm_cell_backward(stream_of(cx), view_of(grad_gates), view_of(grad_cx),
                     OptionalView(from_hidden).get(), OptionalView(from_cell).get(),
                     view_of(before), view_of(after), view_of(kept));
  return {grad_gates, grad_cx, has_bias ? grad_gates.sum(0) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_thnn_fused_gru_cell)(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
    const Optional& input_bias, const Optional& hidden_bias) {
  const at::Tensor inputs = input_gates.contiguous(), hiddens = hidden_gates.contiguous(),
                   state = hx.contiguous();
  check("_thnn_fused_gru_cell", inputs, state, 3);
  check("_thnn_fused_gru_cell", hiddens, state, 3);
  const at::Tensor shift = contiguous(input_bias), hidden_shift = contiguous(hidden_bias);
  check_biases("_thnn_fused_gru_cell", shift, hidden_shift, inputs);
  at::Tensor hy = row(state), workspace = gates_of(state, 5);
  gru_cell(stream_of(hx), view_of(hy), view_of(workspace), view_of(inputs), view_of(hiddens),
           view_of(state), OptionalView(shift).get(), OptionalView(hidden_shift).get());
  return {hy, workspace};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(
    _thnn_fused_gru_cell_backward)(const at::Tensor& grad_hy, const at::Tensor& workspace,
                                   bool has_bias) {
  const at::Tensor above = grad_hy.contiguous(), kept = workspace.contiguous();
  check("_thnn_fused_gru_cell_backward", kept, above, 5);
  const at::Tensor to_inputs = gates_of(above, 3), to_hiddens = gates_of(above, 3),
                   to_hx = row(above);
  gru_cell_backward(stream_of(grad_hy), view_of(to_inputs), view_of(to_hiddens), view_of(to_hx),
                    view_of(above), view_of(kept));
  return {to_inputs, to_hiddens, to_hx, has_bias ? to_inputs.sum(0) : at::Tensor(),
          has_bias ? to_hiddens.sum(0) : at::Tensor()};
}

}  // namespace graft::binding
