// src/torch/ve/recurrent.cpp: LSTM and GRU with fused cells, as on the devices of PyTorch's list.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <vector>

#include "torch/ve/attach.h"
#include "torch/ve/composed.h"
#include "torch/ve/slot.h"
#include "torch/version/composites.h"

namespace graft::binding::ve {
namespace {

using Optional = std::optional<at::Tensor>;
using Tensors = std::vector<at::Tensor>;

// One direction of one layer.
struct Weights {
  at::Tensor input, hidden;
  Optional input_bias, hidden_bias;
};

// What a step hands to the next: hidden values and, of an LSTM, cells.
struct Lstm {
  static constexpr int64_t kGates = 4, kStates = 2;
  static Tensors step(const at::Tensor& gates, const Tensors& state, const Weights& weights) {
    auto [hidden, cells, kept] =
        at::_thnn_fused_lstm_cell(gates, at::matmul(state[0], weights.hidden.t()), state[1],
                                  weights.input_bias, weights.hidden_bias);
    return {hidden, cells};
  }
};
struct Gru {
  static constexpr int64_t kGates = 3, kStates = 1;
  static Tensors step(const at::Tensor& gates, const Tensors& state, const Weights& weights) {
    return {
        std::get<0>(at::_thnn_fused_gru_cell(gates, at::matmul(state[0], weights.hidden.t()),
                                             state[0], weights.input_bias, weights.hidden_bias))};
  }
};

struct Sequence {
  const at::Tensor& input;  // [steps, batch, features], or with batch_first [batch, steps, ...]
  Tensors states;           // hidden values and cells: [layers * directions, batch, size]
  at::TensorList weights;
  bool biased;
  int64_t layers;
  double dropout;
  bool train, both_ways, batch_first;
};

bool alike(const at::Tensor& tensor, const at::Tensor& input) {
  return tensor.device() == input.device() && tensor.scalar_type() == input.scalar_type();
}

// Whether every size fits. PyTorch's composition takes other calls, and says what is wrong.
template <class Cell>
bool fits(const Sequence& call) {
  const int64_t directions = call.both_ways ? 2 : 1, blocks = call.layers * directions;
  const int64_t each = call.biased ? 4 : 2;
  const at::Tensor& input = call.input;
  if (input.device().type() != kType || !input.is_floating_point() || input.dim() != 3)
    return false;
  if (input.sym_numel() == 0 || call.layers < 1) return false;
  if (static_cast<int64_t>(call.states.size()) != Cell::kStates) return false;
  if (static_cast<int64_t>(call.weights.size()) != blocks * each) return false;
  const c10::SymInt batch = input.sym_size(call.batch_first ? 0 : 1);
  const c10::SymInt size = call.states[0].sym_size(-1);
  for (const at::Tensor& state : call.states) {
    if (!alike(state, input) || state.dim() != 3 || state.sym_size(0) != blocks ||
        state.sym_size(1) != batch || state.sym_size(2) != size) {
      return false;
    }
  }
  for (size_t i = 0; i < call.weights.size(); ++i) {
    const at::Tensor& weight = call.weights[i];
    if (!alike(weight, input) || weight.sym_size(0) != size * Cell::kGates) return false;
    if (static_cast<int64_t>(i) % each == 1 && weight.sym_size(1) != size) return false;
  }
  return true;
}

Weights weights_of(const Sequence& call, int64_t block) {
  const at::Tensor* const first = &call.weights[static_cast<size_t>(block * (call.biased ? 4 : 2))];
  if (!call.biased) return {first[0], first[1], {}, {}};
  return {first[0], first[1], first[2], first[3]};
}

// One direction of a layer over all steps: its outputs in the steps' order, and its last state.
template <class Cell>
Tensors one_way(const at::Tensor& input, Tensors& state, const Weights& weights, bool backwards) {
  Tensors gates = at::matmul(input, weights.input.t()).unbind(0), outputs;
  if (backwards) std::reverse(gates.begin(), gates.end());
  for (const at::Tensor& one : gates) {
    state = Cell::step(one, state, weights);
    outputs.push_back(state[0]);
  }
  if (backwards) std::reverse(outputs.begin(), outputs.end());
  return outputs;
}

// Outputs, then the last states.
template <class Cell>
Tensors run(const Sequence& call) {
  at::Tensor values = call.batch_first ? call.input.transpose(0, 1) : call.input;
  std::vector<Tensors> last(Cell::kStates);
  for (int64_t layer = 0, block = 0; layer < call.layers; ++layer) {
    Tensors ways;
    for (int way = 0; way < (call.both_ways ? 2 : 1); ++way, ++block) {
      Tensors state;
      for (const at::Tensor& one : call.states) state.push_back(one.select(0, block));
      ways.push_back(at::stack(one_way<Cell>(values, state, weights_of(call, block), way == 1)));
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(state[i]);
    }
    values = call.both_ways ? at::cat(ways, -1) : ways[0];
    if (call.train && call.dropout > 0 && layer + 1 < call.layers) {
      values = at::dropout(values, call.dropout, true);
    }
  }
  Tensors results = {call.batch_first ? values.transpose(0, 1) : values};
  for (const Tensors& states : last) results.push_back(at::stack(states));
  return results;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(const at::Tensor& input, at::TensorList hx,
                                                    at::TensorList params, bool biased,
                                                    int64_t layers, double dropout, bool train,
                                                    bool both_ways, bool batch_first) {
  const Sequence call{input,   hx.vec(), params,    biased,     layers,
                      dropout, train,    both_ways, batch_first};
  if (!fits<Lstm>(call)) {
    return native::lstm(input, hx, params, biased, layers, dropout, train, both_ways, batch_first);
  }
  const Tensors found = run<Lstm>(call);
  return {found[0], found[1], found[2]};
}

std::tuple<at::Tensor, at::Tensor> gru(const at::Tensor& input, const at::Tensor& hx,
                                       at::TensorList params, bool biased, int64_t layers,
                                       double dropout, bool train, bool both_ways,
                                       bool batch_first) {
  const Sequence call{input, {hx}, params, biased, layers, dropout, train, both_ways, batch_first};
  if (!fits<Gru>(call)) {
    return native::gru(input, hx, params, biased, layers, dropout, train, both_ways, batch_first);
  }
  const Tensors found = run<Gru>(call);
  return {found[0], found[1]};
}

// Whether one step's sizes fit; both biases or none.
template <class Cell>
bool fits_cell(const at::Tensor& input, at::TensorList states, const Weights& weights) {
  if (input.device().type() != kType || !input.is_floating_point() || input.dim() != 2)
    return false;
  if (input.sym_numel() == 0 || states.size() != size_t{Cell::kStates}) return false;
  const c10::SymInt size = states[0].sym_size(-1), rows = size * Cell::kGates;
  const auto is = [&](const Optional& tensor, c10::SymIntArrayRef sizes) {
    return tensor.has_value() && tensor->defined() && alike(*tensor, input) &&
           tensor->sym_sizes() == sizes;
  };
  for (const at::Tensor& state : states) {
    if (!is(state, {input.sym_size(0), size})) return false;
  }
  const bool biased = is(weights.input_bias, {rows}) && is(weights.hidden_bias, {rows});
  const auto none = [](const Optional& bias) { return !bias.has_value() || !bias->defined(); };
  return is(weights.input, {rows, input.sym_size(1)}) && is(weights.hidden, {rows, size}) &&
         (biased || (none(weights.input_bias) && none(weights.hidden_bias)));
}

std::tuple<at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input, at::TensorList hx,
                                             const at::Tensor& w_ih, const at::Tensor& w_hh,
                                             const Optional& b_ih, const Optional& b_hh) {
  const Weights weights{w_ih, w_hh, b_ih, b_hh};
  if (!fits_cell<Lstm>(input, hx, weights)) {
    return native::lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
  }
  const Tensors found = Lstm::step(at::matmul(input, w_ih.t()), hx.vec(), weights);
  return {found[0], found[1]};
}

at::Tensor gru_cell(const at::Tensor& input, const at::Tensor& hx, const at::Tensor& w_ih,
                    const at::Tensor& w_hh, const Optional& b_ih, const Optional& b_hh) {
  const Weights weights{w_ih, w_hh, b_ih, b_hh};
  if (!fits_cell<Gru>(input, hx, weights)) {
    return native::gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
  }
  return Gru::step(at::matmul(input, w_ih.t()), {hx}, weights)[0];
}

}  // namespace

void attach_recurrent() {
  replace_composed("lstm.input", &lstm);
  replace_composed("gru.input", &gru);
  replace_composed("lstm_cell", &lstm_cell);
  replace_composed("gru_cell", &gru_cell);
}

}  // namespace graft::binding::ve
