// tests/compiler/run/executor_test.cpp: compiled graphs on the host driver against the plain
// reference.
#include "compiler/run/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler/passes/passes.h"
#include "kernels/launch/library.h"
#include "kernels/tensor/axes.h"
#include "tests/compiler/run/random_graph.h"
#include "tests/compiler/run/reference_host.h"

namespace graft::compiler::test {
// labels of the file: opencl_gpu torn_tables
namespace {

using graft::test::device;

struct Ran {
  std::vector<std::vector<double>> results;
  size_t launches = 0, externals = 0, libraries = 0;
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

// labels: races
TEST(Executor, TransposedOperandsAndManyRows) {
  const Graph graph = compiled(
      "input %x: float32[200, 190] activation\ninput %y: float32[190, 200] activation\n"
      "node %t: float32[200, 190](1, 200) = aten.t.default(%y) views %y\n"
      "node %d: float32[200, 190] = aten.sub.Tensor(%x, %t, alpha=3)\noutput %d\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 1)), "");
}

// labels: races
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

// A row's sum is as wide as the other group's rows are many.
TEST(Executor, ResultsOfAnotherGroupsReduction) {
  const Graph graph = compiled(
      "input %x: float32[5, 8] activation\ninput %y: float32[8, 3] activation\n"
      "node %r: float32[8] = aten.sum.dim_IntList(%y, [-1])\n"
      "node %a: float32[5, 8] = aten.add.Tensor(%x, %r)\n"
      "node %m: float32[5] = aten.amax.default(%a, [-1])\noutput %m\n");
  EXPECT_EQ(differs(graph, random_inputs(graph, 1)), "");
}

std::string flipped(const std::string& sizes, const std::string& dims) {
  const std::string type = "float32[" + sizes + "]";
  return "input %x: " + type + " activation\ninput %y: " + type + " activation\nnode %f: " + type +
         " = aten.flip.default(%x, [" + dims + "])\nnode %a: " + type +
         " = aten.mul.Tensor(%f, %y)\nnode %b: " + type + " = aten.sub.Tensor(%a, %x)\noutput %b\n";
}

// labels: races
TEST(Executor, ReversedElementsAreReadWhereTheyAre) {
  for (const auto& [sizes, dims] : {std::pair("300", "0"),
                                    {"40, 300", "-1"},
                                    {"40, 300", "0"},
                                    {"40, 300", "0, 1"},
                                    {"3, 5, 7", "0, 2"},
                                    {"3, 5, 7", "1"},
                                    {"9, 1", "1"},
                                    {"0, 4", "0"},
                                    {"4, 0", "1"}}) {
    const Graph graph = compiled(flipped(sizes, dims));
    const Tensors inputs = random_inputs(graph, 2);
    EXPECT_EQ(differs(graph, inputs), "") << sizes << " by " << dims;
    const Ran ran = run(graph, inputs);
    EXPECT_EQ(std::pair(ran.launches, ran.externals), std::pair(size_t{1}, size_t{0})) << sizes;
  }
}

TEST(Executor, ReversedElementsOfOtherGroupsViewsAndRows) {
  const Graph graph = compiled(
      "input %x: float32[20, 60] activation\ninput %y: float32[60, 20] activation\n"
      "node %a: float32[20, 60] = aten.exp.default(%x)\n"
      "node %f: float32[20, 60] = aten.flip.default(%a, [1])\n"
      "node %t: float32[20, 60](1, 20) = aten.t.default(%y) views %y\n"
      "node %g: float32[20, 60] = aten.flip.default(%t, [0, 1])\n"
      "node %b: float32[20, 60] = aten.mul.Tensor(%f, %g)\n"
      "node %c: float32[20, 60] = aten.add.Tensor(%b, %a)\n"
      "node %s: float32[20] = aten.sum.dim_IntList(%c, [-1])\noutput %c\noutput %s\n");
  const Tensors inputs = random_inputs(graph, 3);
  EXPECT_EQ(differs(graph, inputs), "");
  const Ran ran = run(graph, inputs);
  EXPECT_EQ(std::pair(ran.launches, ran.externals), std::pair(size_t{2}, size_t{0}));
}

// labels: races
TEST(Executor, EverySecondElement) {
  const Graph graph = compiled(
      "input %x: float32[30, 80] activation\n"
      "node %e: float32[30, 40](80, 2) = aten.slice.Tensor(%x, 1, 0, 80, 2) views %x\n"
      "node %o: float32[30, 40](80, 2) = aten.slice.Tensor(%x, 1, 1, 80, 2) views %x\n"
      "node %a: float32[30, 40] = aten.mul.Tensor(%e, %o)\n"
      "node %f: float32[30, 40] = aten.flip.default(%e, [1])\n"
      "node %b: float32[30, 40] = aten.sub.Tensor(%a, %f)\noutput %b\n");
  const Tensors inputs = random_inputs(graph, 4);
  EXPECT_EQ(differs(graph, inputs), "");
  EXPECT_EQ(run(graph, inputs).launches, 1u);
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
    const bool one = *strides == 0 && has_blas(device());
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
  // A library that takes both rounds nothing before the end; otherwise the convolution rounds what
  // it stores.
  const bool wide = device().properties().sub_group_size == 16;
  const bool one = has_dnn(device()) && wide;
  EXPECT_GE(ran.launches, 1u);             // the factors and addends
  EXPECT_LE(ran.launches, one ? 1u : 2u);  // what follows the product
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

// Sizes that come back are given again; of more than are kept, those that came last.
TEST(Executor, RunsOfSeveralSizesAreNotedEach) {
  Graph graph = compiled(
      "symbol s range 1..5000 hint 3 from %x[0]\ninput %x: float32[s, 20] activation\n"
      "input %w: float32[20, 20] parameter\nconstant %o: float32[s, 20] = [1.0]\n"
      "node %m: float32[s, 20] = aten.addmm.default(%o, %x, %w)\n"
      "node %t: float32[s, 1] = aten.sum.dim_IntList(%m, [-1], true)\n"
      "node %y: float32[s, 20] = aten.div.Tensor(%m, %t)\noutput %y\n");
  TestHost host;
  Executor executor(graph, host, stream());
  const bool graphs = device().driver().extension<graft_graphs_table>() != nullptr;
  std::vector<std::unique_ptr<Given>> kept;
  const auto run = [&](int64_t s) {
    graph.symbols[0].hint = s;
    const Tensors inputs = random_inputs(graph, static_cast<unsigned>(kept.size()));
    const Given& given = *kept.emplace_back(std::make_unique<Given>(graph, inputs));
    TensorView y;
    const CommandCounts before = stream().counts();
    executor.run(given.arguments, {}, {&y, 1});
    const CommandCounts after = stream().counts();
    EXPECT_TRUE(graft::test::near(elements(y), reference(graph, inputs)[0], 1e-4, 1e-4)) << s;
    return after.graphs > before.graphs && after.launches == before.launches;
  };
  for (int round = 0; round < 4; ++round) {
    for (int64_t s : {3, 700, 1}) EXPECT_EQ(run(s), graphs && round >= 2) << s << " " << round;
  }
  for (int64_t s = 10; s < 24; ++s) run(s);
  EXPECT_EQ(run(1), graphs);
  EXPECT_FALSE(run(3));
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
