// tests/compiler/run/reference_test.cpp: the plain interpreter, and its own test.
#include "tests/compiler/run/reference.h"

#include <cmath>
#include <random>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/op_row_binding.h"
#include "compiler/analysis/reduction.h"
#include "compiler/analysis/views.h"
#include "compiler/grouping/fusion.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler::test {
// labels of the file: optimised
namespace {

struct Place {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Tensors& inputs)
      : graph_(graph), effects_(graph), places_(view_places(graph, effects_)) {
    memory_.resize(graph.values.size());
    for (ValueId id : graph.inputs) store(id, inputs.at(graph.values[id].name));
    for (ValueId id : graph.constants) {
      const GraphValue& value = graph.values[id];
      std::vector<double> data = value.data;
      data.insert(data.end(), value.whole.begin(), value.whole.end());
      data.resize(static_cast<size_t>(count(id)), data[0]);
      store(id, data);
    }
  }

  std::vector<std::vector<double>> run() {
    for (NodeId id : graph_.order) step(graph_.nodes[id]);
    std::vector<std::vector<double>> results;
    for (const Output& output : graph_.outputs) {
      if (output.value != kNone) results.push_back(load(output.value));
    }
    for (ValueId id : graph_.inputs) {
      if (graph_.values[id].mutated) results.push_back(load(id));
    }
    return results;
  }

 private:
  int64_t count(ValueId id) const { return graph_.hint(graph_.values[id].type.count()); }

  Place place(ValueId id) const {
    Place place;
    place.offset = graph_.hint(*places_.offsets[id]);
    for (const Size& size : graph_.values[id].type.sizes) place.sizes.push_back(graph_.hint(size));
    for (const Size& size : graph_.values[id].type.strides) {
      place.strides.push_back(graph_.hint(size));
    }
    return place;
  }

  static int64_t element(const Place& place, int64_t index) {
    int64_t at = place.offset;
    for (size_t i = place.sizes.size(); i-- > 0;) {
      at += index % place.sizes[i] * place.strides[i];
      index /= place.sizes[i];
    }
    return at;
  }

  std::vector<double> load(ValueId id) const {
    const Place from = place(id);
    std::vector<double> data(static_cast<size_t>(count(id)));
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] =
          memory_[places_.bases[id]][static_cast<size_t>(element(from, static_cast<int64_t>(i)))];
    }
    return data;
  }

  void store(ValueId id, const std::vector<double>& data) {
    const Place to = place(id);
    std::vector<double>& memory = memory_[places_.bases[id]];
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t at = static_cast<size_t>(element(to, static_cast<int64_t>(i)));
      if (memory.size() <= at) memory.resize(at + 1);
      memory[at] = data[i];
    }
  }

  // An operand broadcast to the sizes of a value.
  std::vector<double> spread(const Argument& argument, ValueId like) const {
    double number = 0;
    const int64_t total = count(like);
    if (number_of(argument, &number)) {
      return std::vector<double>(static_cast<size_t>(total), number);
    }
    Place from = place(argument.value);
    const Place to = place(like);
    while (from.sizes.size() < to.sizes.size()) {
      from.sizes.insert(from.sizes.begin(), 1), from.strides.insert(from.strides.begin(), 0);
    }
    for (size_t i = 0; i < to.sizes.size(); ++i) {
      if (from.sizes[i] == 1) from.sizes[i] = to.sizes[i], from.strides[i] = 0;
    }
    std::vector<double> data;
    for (int64_t i = 0; i < total; ++i) {
      data.push_back(memory_[places_.bases[argument.value]][static_cast<size_t>(element(from, i))]);
    }
    return data;
  }

  void step(const Node& node) {
    if (node.views != kNone && node.writes.empty()) return;
    const ValueId result = node.results[0];
    if (!node.writes.empty()) {
      const std::vector<double> b = spread(node.arguments[1], result);
      std::vector<double> a = load(node.writes[0]);
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = node.op->name == "aten.copy_.default" ? b[i]
               : node.op->name == "aten.mul_.Tensor" ? a[i] * b[i]
                                                     : a[i] + b[i];
      }
      return store(node.writes[0], a);
    }
    LastReduction reduction;
    if (last_reduction(graph_, node, &reduction)) return reduce(reduction, result);
    if (const auto reversed = reversal(graph_, node)) return reverse(*reversed, result);
    if (node.is(OperatorId::kSoftmax)) return softmax(node);
    if (node.op->cls == OpClass::kMatmul) return product(node);
    if (node.is(OperatorId::kZeros))
      return store(result, std::vector<double>(static_cast<size_t>(count(result)), 0));
    OpRowBinding use;
    if (!row_use(graph_, node, &use)) {
      throw Error(GRAFT_UNSUPPORTED,
                  "the reference does not know " + graph_.describe(graph_.values[result].node));
    }
    std::vector<std::vector<double>> x;
    for (const Argument& input : use.inputs) x.push_back(spread(input, result));
    std::vector<double> data(static_cast<size_t>(count(result)));
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = compute(use, x[0][i], x.size() > 1 ? x[1][i] : 0, x.size() > 2 ? x[2][i] : 0);
    }
    store(result, data);
  }

  double compute(const OpRowBinding& use, double a, double b, double c) const {
    const std::string row = use.row->name;
    if (row == "plain_add") return a + b;
    if (row == "plain_sub") return a - b;
    if (row == "add") return a + use.scalars[0] * b;
    if (row == "sub") return a - use.scalars[0] * b;
    if (row == "mul") return a * b;
    if (row == "div") return a / b;
    if (row == "neg") return -a;
    if (row == "exp") return std::exp(a);
    if (row == "log") return std::log(a);
    if (row == "tanh") return std::tanh(a);
    if (row == "relu") return a < 0 ? 0 : a;
    if (row == "rsqrt") return 1 / std::sqrt(a);
    if (row == "sigmoid") return 1 / (1 + std::exp(-a));
    if (row == "maximum") return std::max(a, b);
    if (row == "pow_scalar") return std::pow(a, use.scalars[0]);
    if (row == "gt") return a > b;
    if (row == "where") return a != 0 ? b : c;
    if (row == "positive") return a;
    throw Error(GRAFT_UNSUPPORTED, "the reference does not know the row " + row);
  }

  void reduce(const LastReduction& reduction, ValueId result) {
    const std::vector<double> from = load(reduction.input);
    std::vector<double> to(static_cast<size_t>(count(result)));
    const size_t n = from.size() / std::max<size_t>(to.size(), 1);
    for (size_t row = 0; row < to.size(); ++row) {
      double value = reduction.fold == Fold::kMax   ? -INFINITY
                     : reduction.fold == Fold::kMin ? INFINITY
                                                    : 0;
      for (size_t i = 0; i < n; ++i) {
        const double x = from[row * n + i];
        value = reduction.fold == Fold::kMax   ? std::max(value, x)
                : reduction.fold == Fold::kMin ? std::min(value, x)
                                               : value + x;
      }
      to[row] = reduction.fold == Fold::kMean ? value / static_cast<double>(n) : value;
    }
    store(result, to);
  }

  void reverse(const Reversal& reversal, ValueId result) {
    Place from = place(reversal.input);
    for (size_t i = 0; i < from.sizes.size(); ++i) {
      if (!reversal.dims[i]) continue;
      from.offset += (from.sizes[i] - 1) * from.strides[i];
      from.strides[i] = -from.strides[i];
    }
    std::vector<double> data;
    for (int64_t i = 0; i < count(result); ++i) {
      data.push_back(memory_[places_.bases[reversal.input]][static_cast<size_t>(element(from, i))]);
    }
    store(result, data);
  }

  void softmax(const Node& node) {
    std::vector<double> data = load(operand(node, 0));
    const size_t n = static_cast<size_t>(place(node.results[0]).sizes.back());
    for (size_t row = 0; row < data.size(); row += n) {
      double most = -INFINITY, sum = 0;
      for (size_t i = 0; i < n; ++i) most = std::max(most, data[row + i]);
      for (size_t i = 0; i < n; ++i) sum += data[row + i] = std::exp(data[row + i] - most);
      for (size_t i = 0; i < n; ++i) data[row + i] /= sum;
    }
    store(node.results[0], data);
  }

  // mm, bmm and addmm with the numbers in keywords.
  void product(const Node& node) {
    const bool adds = node.is(OperatorId::kAddmm);
    const ValueId left = operand(node, adds ? 1 : 0), right = operand(node, adds ? 2 : 1);
    const std::vector<double> a = load(left), b = load(right);
    const size_t k = static_cast<size_t>(place(left).sizes.back());
    const size_t m = static_cast<size_t>(place(node.results[0]).sizes.end()[-2]);
    const size_t n = static_cast<size_t>(place(node.results[0]).sizes.back());
    std::vector<double> c(static_cast<size_t>(count(node.results[0])), 0);
    double alpha = 1, beta = 1;
    if (const Argument* given = argument(node, 4, "alpha")) number_of(*given, &alpha);
    if (const Argument* given = argument(node, 3, "beta")) number_of(*given, &beta);
    const std::vector<double> addend =
        adds ? spread(node.arguments[0], node.results[0]) : std::vector<double>(c.size(), 0);
    for (size_t i = 0; i < c.size(); ++i) {
      const size_t batch = i / (m * n) * k * n;
      for (size_t j = 0; j < k; ++j) c[i] += a[i / n * k + j] * b[batch + j * n + i % n];
      c[i] = adds ? alpha * c[i] + beta * addend[i] : c[i];
    }
    store(node.results[0], c);
  }

  const Graph& graph_;
  const Effects effects_;
  const ViewPlaces places_;
  std::vector<std::vector<double>> memory_;  // by base
};

TEST(Reference, ReversesElements) {
  const Graph graph = graph_of(
      "input %x: float32[2, 3] activation\nnode %f: float32[2, 3] = aten.flip.default(%x, [-1])\n"
      "node %g: float32[2, 3] = aten.flip.default(%x, [0, 1])\noutput %f\noutput %g\n");
  const auto results = reference(graph, {{"x", {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(results[0], (std::vector<double>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(results[1], (std::vector<double>{6, 5, 4, 3, 2, 1}));
}

TEST(Reference, ComputesASmallGraph) {
  const Graph graph = graph_of(
      "input %x: float32[2, 2] activation\ninput %m: float32[2] buffer mutated\n"
      "node %t: float32[2, 2](1, 2) = aten.t.default(%x) views %x\n"
      "node %a: float32[2, 2] = aten.add.Tensor(%t, %m, alpha=2)\n"
      "node %s: float32[2, 1] = aten.sum.dim_IntList(%a, [-1], true)\n"
      "node %w: float32[2] = aten.mul_.Tensor(%m, 3) writes %m views %m\n"
      "output %a\noutput %s\n");
  const auto results = reference(graph, {{"x", {1, 2, 3, 4}}, {"m", {10, 20}}});
  EXPECT_EQ(results[0], (std::vector<double>{21, 43, 22, 44}));
  EXPECT_EQ(results[1], (std::vector<double>{64, 66}));
  EXPECT_EQ(results[2], (std::vector<double>{30, 60}));
}

}  // namespace

std::vector<std::vector<double>> reference(const Graph& graph, const Tensors& inputs) {
  return Interpreter(graph, inputs).run();
}

Tensors random_inputs(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  Tensors inputs;
  for (ValueId id : graph.inputs) {
    std::vector<double>& data = inputs[graph.values[id].name];
    data.resize(static_cast<size_t>(graph.hint(graph.values[id].type.count())));
    // Multiples of 1/8: sums and products of a few are exact.
    for (double& x : data) x = (static_cast<double>(random() % 65) - 32) / 8;
  }
  return inputs;
}

}  // namespace graft::compiler::test
