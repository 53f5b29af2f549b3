// tests/compiler/step_memory_test.cpp: memory of inputs that goes back while a graph runs.
#include "compiler/step_memory.h"

#include <gtest/gtest.h>

#include "tests/compiler/reference_host.h"

namespace graft::compiler::test {
namespace {

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
  GivingHost host(given);
  Executor executor(graph, host, stream());
  std::vector<TensorView> views(graph.outputs.size());
  executor.run(given.arguments, {}, views);
  EXPECT_EQ(host.past_at_output, std::vector<size_t>{0});
  EXPECT_EQ(host.past, (std::vector<size_t>{0, 1}));  // z lives on in the second output
  EXPECT_EQ(elements(views[0]), std::vector<double>(1024 * 2100, 3 - 1050));
  EXPECT_EQ(elements(views[1]), std::vector<double>{7});
}

}  // namespace
}  // namespace graft::compiler::test
