// src/kernels/training/recurrent_kernel.cpp: the kernels of recurrent cells.
#include "kernels/training/recurrent_kernel.h"

#include "codegen/ir/builder.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// The derivative of a sigmoid or tanh from its value.
Value sigmoid_slope(Value y) { return y * (1 - y); }
Value tanh_slope(Value y) { return 1 - y * y; }

class RecurrentWriter {
 public:
  explicit RecurrentWriter(const RecurrentKernel& kernel) : kernel_(kernel), b_(kernel.key()) {}

  ir::Kernel lstm() {
    const Address hy = write(), cy = write(), workspace = write();
    const Address inputs = read(), hiddens = read(), cx = read();
    biases();
    each([&](Value row, Value i) {
      const auto gate = [&](int which) { return sum(inputs, hiddens, row, i, which, 4); };
      const Value in = ir::sigmoid(gate(0)), forget = ir::sigmoid(gate(1));
      const Value cell = tanh(gate(2)), out = ir::sigmoid(gate(3));
      const Value state = forget * cx.load(at(row, i, 0, 1)) + in * cell;
      cy.store(at(row, i, 0, 1), state);
      hy.store(at(row, i, 0, 1), out * tanh(state));
      const Value gates[] = {in, forget, cell, out};
      for (int k = 0; k < 4; ++k) workspace.store(at(row, i, k, 4), gates[k]);
    });
    return b_.finish();
  }

  ir::Kernel lstm_backward() {
    const Address to_gates = write(), to_cx = write();
    const Address from_hy = kernel_.first ? read() : Address();
    const Address from_cy = kernel_.second ? read() : Address();
    const Address cx = read(), cy = read(), workspace = read();
    each([&](Value row, Value i) {
      const Value place = at(row, i, 0, 1);
      Value gates[4];
      for (int k = 0; k < 4; ++k) gates[k] = workspace.load(at(row, i, k, 4));
      const Value in = gates[0], forget = gates[1], cell = gates[2], out = gates[3];
      const Value squashed = tanh(cy.load(place)), zero = like(squashed, 0);
      const Value hidden = kernel_.first ? from_hy.load(place) : zero;
      Value total = hidden * out * tanh_slope(squashed);
      if (kernel_.second) total = total + from_cy.load(place);
      const Value slopes[] = {
          total * cell * sigmoid_slope(in), total * cx.load(place) * sigmoid_slope(forget),
          total * in * tanh_slope(cell), hidden * squashed * sigmoid_slope(out)};
      for (int k = 0; k < 4; ++k) to_gates.store(at(row, i, k, 4), slopes[k]);
      to_cx.store(place, total * forget);
    });
    return b_.finish();
  }

  ir::Kernel gru() {
    const Address hy = write(), workspace = write();
    const Address inputs = read(), hiddens = read(), hx = read();
    biases();
    each([&](Value row, Value i) {
      const auto gate = [&](int which) { return sum(inputs, hiddens, row, i, which, 3); };
      const Value reset = ir::sigmoid(gate(0)), update = ir::sigmoid(gate(1));
      const Value hidden = biased(hiddens.load(at(row, i, 2, 3)), i, 2, kernel_.second, second_);
      const Value input = biased(inputs.load(at(row, i, 2, 3)), i, 2, kernel_.first, first_);
      const Value fresh = tanh(input + reset * hidden), before = hx.load(at(row, i, 0, 1));
      hy.store(at(row, i, 0, 1), fresh + update * (before - fresh));
      const Value kept[] = {reset, update, fresh, before, hidden};
      for (int k = 0; k < 5; ++k) workspace.store(at(row, i, k, 5), kept[k]);
    });
    return b_.finish();
  }

  ir::Kernel gru_backward() {
    const Address to_inputs = write(), to_hiddens = write(), to_hx = write();
    const Address from_hy = read(), workspace = read();
    each([&](Value row, Value i) {
      Value kept[5];
      for (int k = 0; k < 5; ++k) kept[k] = workspace.load(at(row, i, k, 5));
      const Value reset = kept[0], update = kept[1], fresh = kept[2], before = kept[3];
      const Value above = from_hy.load(at(row, i, 0, 1));
      const Value to_update = above * (before - fresh) * sigmoid_slope(update);
      const Value to_fresh = above * (1 - update) * tanh_slope(fresh);
      const Value to_reset = to_fresh * kept[4] * sigmoid_slope(reset);
      const Value slopes[] = {to_reset, to_update, to_fresh};
      for (int k = 0; k < 3; ++k) {
        to_inputs.store(at(row, i, k, 3), slopes[k]);
        to_hiddens.store(at(row, i, k, 3), k == 2 ? to_fresh * reset : slopes[k]);
      }
      to_hx.store(at(row, i, 0, 1), above * update);
    });
    return b_.finish();
  }

 private:
  Address read() { return b_.read(kernel_.dtype); }
  Address write() { return b_.write(kernel_.dtype); }
  void biases() {
    if (kernel_.first) first_ = read();
    if (kernel_.second) second_ = read();
  }

  // Element i of a gate in a row of that many gates.
  Value at(Value row, Value i, int gate, int gates) const {
    return (row * gates + gate) * hidden_ + i;
  }
  Value biased(Value gate, Value i, int which, bool given, const Address& bias) const {
    return given ? gate + bias.load(hidden_ * which + i) : gate;
  }
  Value sum(const Address& inputs, const Address& hiddens, Value row, Value i, int which,
            int gates) const {
    const Value place = at(row, i, which, gates);
    return biased(inputs.load(place), i, which, kernel_.first, first_) +
           biased(hiddens.load(place), i, which, kernel_.second, second_);
  }

  template <class Body>
  void each(Body body) {
    const Value rows = b_.index(), per_item = b_.index();
    hidden_ = b_.index();
    each_line(b_, rows, per_item, [&](Value row) {
      b_.vector_loop(b_.i64(0), hidden_, [&](Value i) { body(row, i); });
    });
  }

  const RecurrentKernel& kernel_;
  Builder b_;
  Address first_, second_;
  Value hidden_;
};

}  // namespace

std::string RecurrentKernel::key() const {
  static const char* const kSteps[] = {"lstm", "lstm_backward", "gru", "gru_backward"};
  return std::string(kSteps[step]) + "_cell_" + name_of(dtype) + (first ? "_first" : "") +
         (second ? "_second" : "");
}

ir::Kernel RecurrentKernel::build() const {
  RecurrentWriter writer(*this);
  switch (step) {
    case kLstm:
      return writer.lstm();
    case kLstmBackward:
      return writer.lstm_backward();
    case kGru:
      return writer.gru();
    default:
      return writer.gru_backward();
  }
}

}  // namespace graft
