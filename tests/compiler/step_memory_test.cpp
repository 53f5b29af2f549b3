// tests/compiler/step_memory_test.cpp: memory of inputs that goes back while a graph runs.
#include "compiler/plan/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "compiler/passes/passes.h"
#include "tests/compiler/run/reference_host.h"

namespace graft::compiler::test {
namespace {

// Gives the memory of inputs back: what is past is overwritten.
class GivingHost : public TestHost {
 public:
  // The inputs of the run that comes.
  void begin(const Given& given) {
    given_ = &given;
    past.clear(), past_at_output.clear();
  }
  bool gives_inputs() const override { return true; }
  void input_past(size_t index) override {
    past.push_back(index);
    const TensorView& view = given_->arguments[index].view;
    const uint32_t nan = 0x7fc00000;
    stream().fill(view.address, static_cast<uint64_t>(view.count()) * 4, &nan, 4);
  }
  graft_address output(size_t index, uint64_t bytes, Stream& on) override {
    past_at_output = past;
    return TestHost::output(index, bytes, on);
  }
  std::vector<size_t> past, past_at_output;

 private:
  const Given* given_ = nullptr;
};

TEST(StepMemory, InputsGoBackWithinTheRun) {
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
  GivingHost host;
  host.begin(given);
  Executor executor(graph, host, stream());
  std::vector<TensorView> views(graph.outputs.size());
  executor.run(given.arguments, {}, views);
  EXPECT_EQ(host.past_at_output, std::vector<size_t>{0});
  EXPECT_EQ(host.past, (std::vector<size_t>{0, 1}));  // z lives on in the second output
  EXPECT_EQ(elements(views[0]), std::vector<double>(1024 * 2100, 3 - 1050));
  EXPECT_EQ(elements(views[1]), std::vector<double>{7});
}

// A first run, one that notes each unit, one that notes two stretches, and two where these are
// given again at other addresses. How many commands a product is depends on the library.
// labels: one_preset
TEST(StepMemory, StretchesAreGivenAgain) {
  Graph graph = graph_of(
      "input %x: float32[1024, 2100] activation\ninput %y: float32[1024, 2100] activation\n"
      "input %v: float32[2100, 8] parameter\ninput %w: float32[8, 2100] parameter\n"
      "node %p: float32[1024, 8] = aten.mm.default(%x, %v)\n"
      "node %q: float32[1024, 8] = aten.tanh.default(%p)\n"
      "node %r: float32[1024, 8] = aten.neg.default(%p)\n"
      "node %s: float32[1024, 8] = aten.mul.Tensor(%q, %r)\n"
      "node %m: float32[1024, 2100] = aten.mm.default(%s, %w)\n"
      "node %d: float32[1024, 2100] = aten.sub.Tensor(%y, %m)\noutput %d\n");
  run_passes(graph, inference_passes());
  GivingHost host;
  Executor executor(graph, host, stream());
  const bool graphs = graft::test::device().driver().extension<graft_graphs_table>() != nullptr;
  std::vector<std::unique_ptr<Given>> calls;
  // Two are told apart, so a run that reads what the one before it left is seen.
  const std::array<Tensors, 2> inputs = {random_inputs(graph, 0), random_inputs(graph, 1)};
  const std::array<std::vector<double>, 2> expected = {reference(graph, inputs[0])[0],
                                                       reference(graph, inputs[1])[0]};
  uint64_t commands = 0;  // of the first run, which gives them one by one
  for (uint64_t round = 0; round < 5; ++round) {
    host.begin(*calls.emplace_back(std::make_unique<Given>(graph, inputs[round % 2])));
    std::vector<TensorView> views(1);
    const CommandCounts before = stream().counts();
    executor.run(calls.back()->arguments, {}, views);
    const CommandCounts after = stream().counts();
    EXPECT_TRUE(graft::test::near(elements(views[0]), expected[round % 2], 1e-3, 1e-3))
        << "run " << round;
    EXPECT_EQ(host.past_at_output.front(), 0u);
    EXPECT_EQ(std::ranges::count(host.past, 1), 1);
    const uint64_t alone = after.launches - before.launches;
    if (round == 0) commands = alone;
    if (round >= 3 && graphs) {
      EXPECT_GE(after.graphs - before.graphs, 1u) << "run " << round;
      EXPECT_EQ(after.graphs - before.graphs + alone, 2u) << "run " << round;
      EXPECT_EQ(after.in_graphs - before.in_graphs + alone, commands) << "run " << round;
    }
  }
}

}  // namespace
}  // namespace graft::compiler::test
