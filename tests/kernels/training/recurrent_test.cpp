// tests/kernels/training/recurrent_test.cpp: cells against their formulas, gradients against
// differences.
#include "kernels/training/recurrent.h"

#include <cmath>
#include <functional>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Numbers = std::vector<double>;
constexpr int64_t kRows = 5, kHidden = 37;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
size_t at(int64_t row, int64_t i, int64_t gate = 0, int64_t gates = 1) {
  return static_cast<size_t>((row * gates + gate) * kHidden + i);
}

template <class Visit>
void each(Visit visit) {
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kHidden; ++i) visit(row, i);
  }
}

// {hy, cy} from gates that already hold both parts and their biases.
std::pair<Numbers, Numbers> lstm(const Numbers& gates, const Numbers& cx) {
  Numbers hy(cx.size()), cy(cx.size());
  each([&](int64_t row, int64_t i) {
    const auto gate = [&](int64_t k) { return gates[at(row, i, k, 4)]; };
    const double c = sigmoid(gate(1)) * cx[at(row, i)] + sigmoid(gate(0)) * std::tanh(gate(2));
    cy[at(row, i)] = c;
    hy[at(row, i)] = sigmoid(gate(3)) * std::tanh(c);
  });
  return {hy, cy};
}

Numbers gru(const Numbers& inputs, const Numbers& hiddens, const Numbers& hx) {
  Numbers hy(hx.size());
  each([&](int64_t row, int64_t i) {
    const auto input = [&](int64_t k) { return inputs[at(row, i, k, 3)]; };
    const auto hidden = [&](int64_t k) { return hiddens[at(row, i, k, 3)]; };
    const double reset = sigmoid(input(0) + hidden(0)), update = sigmoid(input(1) + hidden(1));
    const double fresh = std::tanh(input(2) + reset * hidden(2));
    hy[at(row, i)] = (1 - update) * fresh + update * hx[at(row, i)];
  });
  return hy;
}

// d loss / d x by central differences.
Numbers differences(Numbers x, const std::function<double(const Numbers&)>& loss) {
  Numbers slopes(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i], step = 1e-4;
    x[i] = kept + step;
    const double above = loss(x);
    x[i] = kept - step;
    slopes[i] = (above - loss(x)) / (2 * step);
    x[i] = kept;
  }
  return slopes;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Numbers biased(const Numbers& gates, const Numbers& bias) {
  Numbers sum = gates;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += bias[i % bias.size()];
  return sum;
}

Numbers plus(const Numbers& a, const Numbers& b) {
  Numbers sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

struct Given : DeviceTensor {
  Given(std::vector<int64_t> sizes, graft_dtype dtype, unsigned seed)
      : DeviceTensor(std::move(sizes), dtype), values(numbers(view().count(), seed, -2, 2, dtype)) {
    set(values);
  }
  Numbers values;
};

TEST(Recurrent, LstmCell) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
    for (bool bias : {false, true}) {
      SCOPED_TRACE(name_of(dtype));
      const Given inputs({kRows, 4 * kHidden}, dtype, 1), hiddens({kRows, 4 * kHidden}, dtype, 2),
          cx({kRows, kHidden}, dtype, 3), b1({4 * kHidden}, dtype, 4), b2({4 * kHidden}, dtype, 5);
      DeviceTensor hy({kRows, kHidden}, dtype), cy({kRows, kHidden}, dtype),
          workspace({kRows, 4 * kHidden}, dtype);
      lstm_cell(stream(), hy, cy, workspace, inputs, hiddens, cx, bias ? &b1.view() : nullptr,
                bias ? &b2.view() : nullptr);
      Numbers gates = plus(inputs.values, hiddens.values);
      if (bias) gates = biased(biased(gates, b1.values), b2.values);
      const auto [eh, ec] = lstm(gates, cx.values);
      const double t = tolerance(dtype);
      EXPECT_TRUE(near(hy.get(), eh, t, t));
      EXPECT_TRUE(near(cy.get(), ec, t, t));
    }
  }
}

TEST(Recurrent, LstmGradients) {
  const auto dtype = GRAFT_FLOAT64;
  const Given gates({kRows, 4 * kHidden}, dtype, 1), cx({kRows, kHidden}, dtype, 3),
      gh({kRows, kHidden}, dtype, 6), gc({kRows, kHidden}, dtype, 7);
  DeviceTensor zeros({kRows, 4 * kHidden}, dtype), hy({kRows, kHidden}, dtype),
      cy({kRows, kHidden}, dtype), workspace({kRows, 4 * kHidden}, dtype),
      to_gates({kRows, 4 * kHidden}, dtype), to_cx({kRows, kHidden}, dtype);
  zeros.set(Numbers(gates.values.size(), 0.0));
  lstm_cell(stream(), hy, cy, workspace, gates, zeros, cx, nullptr, nullptr);
  for (int given : {1, 2, 3}) {
    lstm_cell_backward(stream(), to_gates, to_cx, given & 1 ? &gh.view() : nullptr,
                       given & 2 ? &gc.view() : nullptr, cx, cy, workspace);
    const auto loss = [&](const Numbers& g, const Numbers& c) {
      const auto [h, next] = lstm(g, c);
      return (given & 1 ? dot(h, gh.values) : 0) + (given & 2 ? dot(next, gc.values) : 0);
    };
    EXPECT_TRUE(
        near(to_gates.get(),
             differences(gates.values, [&](const Numbers& x) { return loss(x, cx.values); }), 1e-6,
             1e-6));
    EXPECT_TRUE(
        near(to_cx.get(),
             differences(cx.values, [&](const Numbers& x) { return loss(gates.values, x); }), 1e-6,
             1e-6));
  }
}

TEST(Recurrent, GruCell) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
    for (bool bias : {false, true}) {
      SCOPED_TRACE(name_of(dtype));
      const Given inputs({kRows, 3 * kHidden}, dtype, 1), hiddens({kRows, 3 * kHidden}, dtype, 2),
          hx({kRows, kHidden}, dtype, 3), b1({3 * kHidden}, dtype, 4), b2({3 * kHidden}, dtype, 5);
      DeviceTensor hy({kRows, kHidden}, dtype), workspace({kRows, 5 * kHidden}, dtype);
      gru_cell(stream(), hy, workspace, inputs, hiddens, hx, bias ? &b1.view() : nullptr,
               bias ? &b2.view() : nullptr);
      const Numbers i = bias ? biased(inputs.values, b1.values) : inputs.values;
      const Numbers h = bias ? biased(hiddens.values, b2.values) : hiddens.values;
      EXPECT_TRUE(near(hy.get(), gru(i, h, hx.values), tolerance(dtype), tolerance(dtype)));
    }
  }
}

TEST(Recurrent, GruGradients) {
  const auto dtype = GRAFT_FLOAT64;
  const Given inputs({kRows, 3 * kHidden}, dtype, 1), hiddens({kRows, 3 * kHidden}, dtype, 2),
      hx({kRows, kHidden}, dtype, 3), gh({kRows, kHidden}, dtype, 6);
  DeviceTensor hy({kRows, kHidden}, dtype), workspace({kRows, 5 * kHidden}, dtype),
      to_inputs({kRows, 3 * kHidden}, dtype), to_hiddens({kRows, 3 * kHidden}, dtype),
      to_hx({kRows, kHidden}, dtype);
  gru_cell(stream(), hy, workspace, inputs, hiddens, hx, nullptr, nullptr);
  gru_cell_backward(stream(), to_inputs, to_hiddens, to_hx, gh, workspace);
  const Numbers &i = inputs.values, &h = hiddens.values, &g = gh.values, &x = hx.values;
  const auto check = [](const DeviceTensor& actual, const Numbers& from, auto loss) {
    EXPECT_TRUE(near(actual.get(), differences(from, loss), 1e-6, 1e-6));
  };
  check(to_inputs, i, [&](const Numbers& v) { return dot(gru(v, h, x), g); });
  check(to_hiddens, h, [&](const Numbers& v) { return dot(gru(i, v, x), g); });
  check(to_hx, x, [&](const Numbers& v) { return dot(gru(i, h, v), g); });
}

}  // namespace
