// tests/compiler/executor_test.cpp: compiled graphs on the host driver against the plain reference.
#include "compiler/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler/passes.h"
#include "kernels/axes.h"
#include "kernels/library.h"
#include "tests/compiler/device_host.h"
#include "tests/compiler/graph_text.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/reference.h"
#include "tests/kernels/device_tensor.h"

namespace graft::compiler::test {
namespace {

using graft::test::device;
using graft::test::DeviceTensor;
using graft::test::stream;

std::vector<int64_t> sizes_of(const TensorView& view) {
  return {view.sizes, view.sizes + view.rank};
}

// Elements of a float32 view in any layout.
std::vector<double> elements(const TensorView& view) {
  std::vector<float> memory(extent_bytes(view) / 4);
  if (memory.empty()) return {};
  stream().read(memory.data(), view.address, memory.size() * 4);
  std::vector<double> data;
  for (int64_t i = 0; i < view.count(); ++i) {
    int64_t rest = i, at = 0;
    for (int k = view.rank; k-- > 0; rest /= view.sizes[k])
      at += rest % view.sizes[k] * view.strides[k];
    data.push_back(memory[static_cast<size_t>(at)]);
  }
  return data;
}

// External nodes run in the plain reference, as graphs of one node.
class TestHost : public DeviceHost {
 public:
  void run(const ExternalCall& call, Stream& on) override {
    std::string text, arguments;
    Tensors inputs;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const std::string name = "i" + std::to_string(i);
      inputs[name] = elements(call.operands[i]);
      text += "input %" + name + ": " + type_of(call.operands[i]) + " activation" +
              (!call.node.writes.empty() && i == 0 ? " mutated\n" : "\n");
      arguments += (i == 0 ? "%" : ", %") + name;
    }
    for (const Argument& argument : call.node.arguments) {
      if (argument.kind != Argument::Kind::kValue) {
        arguments += ", " + print_argument(call.graph, argument);
      }
    }
    text += "node %r: " + type_of(call.results[0]) + " = " + call.node.op + "(" + arguments + ")";
    if (!call.node.writes.empty()) text += " writes %i0 views %i0";
    const auto results = reference(graph_of(text + "\noutput %r\n"), inputs);
    const std::vector<float> data(results[0].begin(), results[0].end());
    ASSERT_TRUE(call.results[0].contiguous());
    if (data.empty()) return;
    on.copy(call.results[0].address, reinterpret_cast<uint64_t>(data.data()), data.size() * 4,
            GRAFT_HOST_TO_DEVICE);
    on.synchronize();
  }

 private:
  static std::string type_of(const TensorView& view) {
    std::string text = "float32[";
    for (int64_t size : sizes_of(view))
      text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
    return text + "]";
  }
};

struct Ran {
  std::vector<std::vector<double>> results;
  size_t launches = 0, externals = 0, libraries = 0;
};

// A call's inputs, in memory of their own.
struct Given {
  Given(const Graph& graph, const Tensors& inputs) {
    for (ValueId id : graph.inputs) {
      const Value& value = graph.values[id];
      ExecutionInput argument;
      if (value.kind == InputKind::kScalar) {
        argument.scalar = Scalar::of(value.type.dtype, inputs.at(value.name)[0]);
      } else {
        std::vector<int64_t> sizes;
        for (const Size& size : value.type.sizes) sizes.push_back(graph.hint(size));
        tensors.push_back(std::make_unique<DeviceTensor>(sizes, value.type.dtype));
        argument.view = tensors.back()->set(inputs.at(value.name)).view();
        if (value.mutated) mutated.push_back(tensors.back().get());
      }
      arguments.push_back(argument);
    }
  }
  std::vector<std::unique_ptr<DeviceTensor>> tensors;
  std::vector<DeviceTensor*> mutated;
  std::vector<ExecutionInput> arguments;
};

// Four times, on other memory each: once as a first run, once noted, twice from the notes.
Ran run(const Graph& graph, const Tensors& inputs) {
  TestHost host;
  Executor executor(graph, host, stream());
  std::vector<std::unique_ptr<Given>> calls;
  Ran first;
  for (int round = 0; round < 4; ++round) {
    const Given& given = *calls.emplace_back(std::make_unique<Given>(graph, inputs));
    std::vector<TensorView> views(graph.outputs.size());
    executor.run(given.arguments, {}, views);
    Ran ran;
    for (const TensorView& view : views) ran.results.push_back(elements(view));
    for (DeviceTensor* tensor : given.mutated) ran.results.push_back(tensor->get());
    if (round == 0) first = ran;
    EXPECT_EQ(ran.results, first.results) << "run " << round;
  }
  first.launches = executor.launches(), first.externals = executor.externals();
  first.libraries = executor.libraries();
  return first;
}

std::string differs(const Graph& graph, const Tensors& inputs) {
  const auto expected = reference(graph, inputs);
  const Ran ran = run(graph, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto same = graft::test::near(ran.results[i], expected[i], 1e-4, 1e-4);
    if (!same) return std::string("result ") + std::to_string(i) + ": " + same.message();
  }
  return "";
}

Graph compiled(const std::string& body) {
  Graph graph = graph_of(body);
  run_passes(graph, inference_passes());
  return graph;
}

TEST(Executor, OneKernelForAChain) {
  const Graph graph = compiled(
      "input %x: float32[40, 300] activation\ninput %b: float32[300] parameter\n"
      "node %a: float32[40, 300] = aten.add.Tensor(%x, %b)\n"
      "node %c: float32[40, 300] = aten.tanh.default(%a)\n"
      "node %d: float32[40, 300] = aten.mul.Tensor(%c, %x)\noutput %d\noutput %a\n");
  const Tensors inputs = random_inputs(graph, 1);
  EXPECT_EQ(differs(graph, inputs), "");
  EXPECT_EQ(run(graph, inputs).launches, 1u);
}

TEST(Executor, TransposedOperandsAndManyRows) {
  const Graph graph = compiled(
      "input %x: float32[200, 190] activation\ninput %y: float32[190, 200] activation\n"
      "node %t: float32[200, 190](1, 200) = aten.t.default(%y) views %y\n"
      "node %d: float32[200, 190] = aten.sub.Tensor(%x, %t, alpha=3)\noutput %d\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 1)), "");
}

TEST(Executor, SoftmaxAndMeansAreOneKernel) {
  for (const char* n : {"7", "48", "49", "1000"}) {
    const std::string size = n;
    const Graph graph =
        compiled("input %x: float32[9, " + size +
                 "] activation\n"
                 "node %a: float32[9, " +
                 size +
                 "] = aten.mul.Tensor(%x, 0.125)\n"
                 "node %y: float32[9, " +
                 size +
                 "] = aten._softmax.default(%a, -1, false)\n"
                 "node %m: float32[9] = aten.mean.dim(%a, [-1])\noutput %y\noutput %m\n");
    const Tensors inputs = random_inputs(graph, 1);
    EXPECT_EQ(differs(graph, inputs), "") << n;
    EXPECT_EQ(run(graph, inputs).launches, 1u);
  }
}

TEST(Executor, ExternalNodesWritesAndScalars) {
  const Graph graph = compiled(
      "input %x: float32[4, 8] activation\ninput %w: float32[8, 8] parameter\n"
      "input %m: float32[8] buffer mutated\ninput %k: float32[] scalar\n"
      "node %p: float32[4, 8] = aten.mm.default(%x, %w)\n"
      "node %q: float32[4, 8] = aten.add.Tensor(%p, %m)\n"
      "node %r: float32[4, 8] = aten.relu.default(%q)\n"
      "node %s: float32[4, 8] = aten.mul.Tensor(%r, %k)\n"
      "node %v: float32[8] = aten.add_.Tensor(%m, %m) writes %m views %m\noutput %s\n");
  const Tensors inputs = random_inputs(graph, 1);
  EXPECT_EQ(differs(graph, inputs), "");
  EXPECT_EQ(run(graph, inputs).externals, 1u);
}

TEST(Executor, ViewsOfAnInputThatIsAViewItself) {
  const Graph graph = compiled(
      "input %x: float32[6, 8] activation\ninput %y: float32[1, 3, 8] activation alias %x\n"
      "input %w: float32[8, 8] parameter\n"
      "node %v: float32[3, 8] = aten.view.default(%y, [3, 8]) views %y\n"
      "node %p: float32[3, 8] = aten.mm.default(%v, %w)\noutput %p\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 1)), "");
}

TEST(Executor, ProductsWithTheirEpilogueAreOneCall) {
  // A library takes the first and says no to the second, whose rows have gaps.
  for (const char* strides : {"", "(16, 1)"}) {
    const std::string type = std::string("float32[5, 8]") + strides;
    Graph graph = graph_of(
        "input %x: float32[5, 6] activation\ninput %w: float32[6, 8] parameter\n"
        "input %b: float32[8] parameter\ninput %r: float32[5, 8] activation\n"
        "node %z: " +
        type +
        " = aten.mul.Tensor(%r, 1.5)\n"
        "node %p: " +
        type +
        " = aten.addmm.default(%b, %x, %w, beta=1, alpha=0.5)\n"
        "node %s: " +
        type +
        " = aten.add.Tensor(%z, %p)\n"
        "node %a: " +
        type +
        " = aten.relu.default(%s)\n"
        "node %o: float32[5, 8] = aten.neg.default(%a)\noutput %o\n");
    run_passes(graph, grouping_passes());
    const Tensors inputs = random_inputs(graph, 4);
    EXPECT_EQ(differs(graph, inputs), "") << strides;
    const Ran ran = run(graph, inputs);
    EXPECT_EQ(ran.libraries, 1u);
    EXPECT_EQ(ran.externals, 0u);
    const bool one = *strides == 0 && blas_library(device()).table != nullptr;
    EXPECT_EQ(ran.launches, one ? 2u : 3u);
  }
}

// A batch norm of halves behind a convolution of single pixels.
const std::string kNormOfHalves =
    "input %x: bfloat16[2, 3, 4, 4] activation\n"
    "input %w: bfloat16[8, 3, 1, 1] parameter\ninput %k: bfloat16[8] parameter\n"
    "input %g: bfloat16[8] parameter\ninput %b: bfloat16[8] parameter\n"
    "input %m: bfloat16[8] buffer\ninput %v: bfloat16[8] buffer\n"
    "node %c: bfloat16[2, 8, 4, 4](128, 1, 32, 8) = aten.convolution.default(%x, %w, %k, [1, 1], "
    "[0, 0], [1, 1], false, [0, 0], 1)\n"
    "node %y: bfloat16[2, 8, 4, 4](128, 1, 32, 8), %s: float32[0], %i: float32[0] = "
    "aten._native_batch_norm_legit_no_training.default(%c, %g, %b, %m, %v, 0.1, 0.001)\n"
    "node %r: bfloat16[2, 8, 4, 4](128, 1, 32, 8) = aten.relu.default(%y)\n"
    "node %o: float32[2, 8, 4, 4](128, 1, 32, 8) = aten._to_copy.default(%r, dtype=@float32)\n"
    "output %o\n";

TEST(Executor, BatchNormsOfHalvesAreStepsOfTheConvolution) {
  const Graph graph = compiled(kNormOfHalves);
  Tensors inputs;
  for (const auto& [name, sizes] : std::map<std::string, int64_t>{
           {"x", 96}, {"w", 24}, {"k", 8}, {"g", 8}, {"b", 8}, {"m", 8}, {"v", 8}}) {
    const double low = name == "v" ? 0.5 : -2;
    inputs[name] =
        graft::test::numbers(sizes, static_cast<unsigned>(name[0]), low, 2, GRAFT_BFLOAT16);
  }
  std::vector<double> expected;
  for (size_t i = 0; i < 256; ++i) {
    const size_t n = i / 128, channel = i / 16 % 8, pixel = i % 16;
    double sum = inputs["k"][channel];
    for (size_t from = 0; from < 3; ++from) {
      sum += inputs["x"][(n * 3 + from) * 16 + pixel] * inputs["w"][channel * 3 + from];
    }
    const double scale = inputs["g"][channel] / std::sqrt(inputs["v"][channel] + 0.001);
    expected.push_back(std::max((sum - inputs["m"][channel]) * scale + inputs["b"][channel], 0.0));
  }
  const Ran ran = run(graph, inputs);
  EXPECT_EQ(ran.externals, 0u);
  EXPECT_EQ(ran.libraries, 1u);
  // A library rounds nothing before the end; without one the convolution rounds what it stores.
  const bool one = dnn_library(device()).table != nullptr;
  EXPECT_EQ(ran.launches, one ? 1u : 2u);  // the factors and addends; what follows the product
  const double rounding = one ? 1e-5 : 1.0 / 64;
  EXPECT_TRUE(graft::test::near(ran.results[0], expected, rounding, 4 * rounding));
}

TEST(Executor, ProductsOfBatchesAndOfNothing) {
  const Graph graph = compiled(
      "symbol k range 0..9 hint 3 from %x[2]\n"
      "input %x: float32[2, 4, k] activation\ninput %y: float32[2, k, 5] activation\n"
      "node %p: float32[2, 4, 5] = aten.bmm.default(%x, %y)\n"
      "node %s: float32[2, 4, 5] = aten.mul.Tensor(%p, 0.25)\noutput %s\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 4)), "");
  Graph empty = graph;
  empty.symbols[0].hint = 0;
  EXPECT_EQ(differs(empty, random_inputs(empty, 4)), "");
}

TEST(Executor, WalksThroughMemoryAsItLies) {
  const Graph graph = compiled(
      "input %x: float32[3, 5, 7, 9] activation\ninput %b: float32[5, 1, 1] parameter\n"
      "node %a: float32[3, 5, 7, 9](315, 1, 45, 5) = aten.add.Tensor(%x, %b)\n"
      "node %y: float32[3, 5, 7, 9] = aten.mul.Tensor(%a, 2.0)\noutput %y\noutput %a\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 4)), "");
}

TEST(Executor, GeluByTheTangentIsAKernel) {
  const Graph graph = compiled(
      "input %x: float32[3] activation\n"
      "node %y: float32[3] = aten.gelu.default(%x, approximate=\"tanh\")\noutput %y\n");
  const Tensors inputs = {{"x", {-1, 0.5, 3}}};
  const Ran ran = run(graph, inputs);
  EXPECT_EQ(ran.launches, 1u);
  EXPECT_TRUE(graft::test::near(ran.results[0], {-0.15880801, 0.34571401, 2.99636261}, 1e-5, 0));
}

TEST(Executor, SymbolsChangeBetweenRuns) {
  Graph graph = compiled(
      "symbol s range 1..5000 hint 3 from %x[0]\ninput %x: float32[s, 20] activation\n"
      "node %a: float32[s, 20] = aten.exp.default(%x)\n"
      "node %t: float32[s, 1] = aten.sum.dim_IntList(%a, [-1], true)\n"
      "node %y: float32[s, 20] = aten.div.Tensor(%a, %t)\noutput %y\n");
  TestHost host;
  Executor executor(graph, host, stream());
  for (int64_t s : {3, 1, 5000, 3, 3, 3, 3, 2, 2, 2}) {
    graph.symbols[0].hint = s;
    const Tensors inputs = random_inputs(graph, 2);
    DeviceTensor x({s, 20}, GRAFT_FLOAT32);
    ExecutionInput argument;
    argument.view = x.set(inputs.at("x")).view();
    TensorView y;
    executor.run({&argument, 1}, {}, {&y, 1});
    EXPECT_TRUE(graft::test::near(elements(y), reference(graph, inputs)[0], 1e-4, 1e-6)) << s;
  }
  DeviceTensor wrong({3, 21}, GRAFT_FLOAT32);
  ExecutionInput argument;
  argument.view = wrong.view();
  TensorView y;
  EXPECT_TRUE(has(message([&] {
                    executor.run({&argument, 1}, {}, {&y, 1});
                  }),
                  "input %x has another"));
  DeviceTensor large({5001, 20}, GRAFT_FLOAT32);
  argument.view = large.view();
  EXPECT_TRUE(has(message([&] { executor.run({&argument, 1}, {}, {&y, 1}); }), "s is 5001"));
}

// Gives the memory of inputs back: what is past is overwritten.
class GivingHost : public TestHost {
 public:
  explicit GivingHost(const Given& given) : given_(given) {}
  bool gives_inputs() const override { return true; }
  void input_past(size_t index) override {
    past.push_back(index);
    const TensorView& view = given_.arguments[index].view;
    const uint32_t nan = 0x7fc00000;
    stream().fill(view.address, static_cast<uint64_t>(view.count()) * 4, &nan, 4);
  }
  graft_address output(size_t index, uint64_t bytes, Stream& on) override {
    past_at_output = past;
    return TestHost::output(index, bytes, on);
  }
  std::vector<size_t> past, past_at_output;

 private:
  const Given& given_;
};

TEST(Executor, MemoryOfInputsGoesBackWithinTheRun) {
  const std::string image = "float32[1024, 2100]";
  const Graph graph = graph_of("input %x: " + image + " activation\ninput %y: " + image +
                               " activation\ninput %z: float32[1] activation\n"
                               "node %s: float32[1024, 1] = aten.sum.dim_IntList(%x, [-1], true)\n"
                               "node %n: float32[1024, 1] = aten.neg.default(%s)\n"
                               "node %d: " +
                               image +
                               " = aten.add.Tensor(%y, %n)\n"
                               "node %v: float32[1] = aten.view.default(%z, [1]) views %z\n"
                               "output %d\noutput %v alias %z\n");
  Tensors inputs;
  for (const char* name : {"x", "y"}) inputs[name].assign(1024 * 2100, *name == 'x' ? 0.5 : 3);
  inputs["z"] = {7};
  const Given given(graph, inputs);
  GivingHost host(given);
  Executor executor(graph, host, stream());
  std::vector<TensorView> views(graph.outputs.size());
  executor.run(given.arguments, {}, views);
  EXPECT_EQ(host.past_at_output, std::vector<size_t>{0});
  EXPECT_EQ(host.past, (std::vector<size_t>{0, 1}));  // z lives on in the second output
  EXPECT_EQ(elements(views[0]), std::vector<double>(1024 * 2100, 3 - 1050));
  EXPECT_EQ(elements(views[1]), std::vector<double>{7});
}

TEST(Executor, FuzzAgainstTheReference) {
  auto wrong = [](const std::string& body) {
    const Graph before = graph_of(body);
    std::string text;
    const std::string error =
        message([&] { text = differs(compiled(body), random_inputs(before, 3)); });
    return error.empty() ? text : error;
  };
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::string body = random_graph(seed, 4 + static_cast<int>(seed));
    const std::string text = wrong(body);
    if (text.empty()) continue;
    FAIL() << "seed " << seed << ": " << text << "\nshrunk to\n"
           << shrunk(body, [&](const std::string& smaller) { return !wrong(smaller).empty(); });
  }
}

}  // namespace
}  // namespace graft::compiler::test
