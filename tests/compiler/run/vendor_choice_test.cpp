// tests/compiler/run/vendor_choice_test.cpp: fused kernels beside nodes one by one, of which one is
// certainly slower.
#include "compiler/run/vendor_choice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "compiler/passes/passes.h"
#include "compiler/run/executor.h"
#include "runtime/platform/device.h"
#include "runtime/stream/command_capture.h"
#include "tests/compiler/run/reference_host.h"

namespace graft::compiler::test {
namespace {

using graft::test::device;

// What the nodes one by one do.
struct Nodes {
  std::chrono::milliseconds take{0};
  Error* failure = nullptr;
  int asked = 0, hosts = 0;  // runs of a node; hosts that were made
};

// Its nodes compute nothing, and take what they are told.
class PacedHost : public DeviceHost {
 public:
  explicit PacedHost(Nodes* nodes) : nodes_(nodes) {}
  void run(const ExternalCall&, Stream&) override {
    ++nodes_->asked;
    CommandCapture::spoil_current();  // each run asks again
    if (nodes_->failure != nullptr) throw *nodes_->failure;
    std::this_thread::sleep_for(nodes_->take);
  }
  std::unique_ptr<ExecutionHost> beside() const override {
    ++nodes_->hosts;
    return std::make_unique<PacedHost>(nodes_);
  }

 private:
  Nodes* const nodes_;
};

// Each test has sizes of its own, for outcomes are kept.
Graph chain(const std::string& size, const std::string& ops = "relu tanh") {
  const std::string type = "float32[" + size + "]";
  std::string body = "input %v: " + type + " activation\n", last = "%v";
  for (size_t begin = 0, number = 0; begin < ops.size(); ++number) {
    const size_t end = std::min(ops.find(' ', begin), ops.size());
    const std::string next = "%a" + std::to_string(number);
    body += "node " + next + ": " + type + " = aten." + ops.substr(begin, end - begin) +
            ".default(" + last + ")\n";
    last = next, begin = end + 1;
  }
  return graph_of(body + "group g pointwise %a0 %a1\noutput " + last + "\n");
}

std::optional<bool> choose(const Graph& graph, Nodes* nodes) {
  PacedHost host(nodes);
  return fused_is_faster(stream(), Effects(graph), graph, graph.groups.at(0), host);
}

constexpr std::chrono::milliseconds kLong{20};

TEST(VendorChoice, SlowNodesAreFused) {
  Nodes nodes{kLong};
  EXPECT_EQ(choose(chain("101"), &nodes), true);
  EXPECT_GE(nodes.asked, 4);
}

TEST(VendorChoice, NodesThatCostNothingAreNot) {
  Nodes nodes;
  EXPECT_EQ(choose(chain("16, 1000, 1000", "tanh tanh"), &nodes), false);
}

TEST(VendorChoice, AGroupIsMeasuredOnce) {
  Nodes nodes{kLong};
  EXPECT_EQ(choose(chain("102"), &nodes), true);
  const int asked = nodes.asked;
  EXPECT_EQ(choose(chain("102"), &nodes), true);
  EXPECT_EQ(nodes.asked, asked);
  EXPECT_EQ(choose(chain("103"), &nodes), true);
  EXPECT_GT(nodes.asked, asked);
}

TEST(VendorChoice, SizesAreTheHints) {
  const std::string type = "float32[s, 7]";
  const auto graph = [&](int64_t hint) {
    return graph_of("symbol s range 0..5000 hint " + std::to_string(hint) +
                    " from %x[0]\ninput %x: " + type + " activation\nnode %a: " + type +
                    " = aten.relu.default(%x)\nnode %b: " + type +
                    " = aten.tanh.default(%a)\ngroup g pointwise %a %b\noutput %b\n");
  };
  Nodes nodes{kLong};
  EXPECT_EQ(choose(graph(104), &nodes), true);
  const int asked = nodes.asked;
  EXPECT_EQ(choose(graph(105), &nodes), true);
  EXPECT_GT(nodes.asked, asked);
  EXPECT_EQ(choose(graph(0), &nodes), std::nullopt) << "nothing to measure";
  Graph outside = graph(106);
  outside.symbols[0].hint = 5001;
  EXPECT_EQ(choose(outside, &nodes), std::nullopt) << "out of range";
}

TEST(VendorChoice, NumbersConstantsViewsAndReductions) {
  const Graph graph = graph_of(
      "input %x: float32[40, 30] activation\ninput %k: float32[] scalar\n"
      "constant %c: float32[] = [2.0]\n"
      "node %t: float32[30, 40](1, 30) = aten.t.default(%x) views %x\n"
      "node %m: float32[30, 40] = aten.mul.Tensor(%t, %k)\n"
      "node %a: float32[30, 40] = aten.add.Tensor(%m, %c)\n"
      "node %s: float32[30] = aten.sum.dim_IntList(%a, [-1])\n"
      "group g reduction %m %a %s\noutput %s\noutput %a\n");
  Nodes nodes{kLong};
  EXPECT_EQ(choose(graph, &nodes), true);
}

TEST(VendorChoice, NodesWithEffectsAreNotTried) {
  const Graph graph = graph_of(
      "input %x: float32[106] activation mutated\n"
      "node %a: float32[106] = aten.relu.default(%x)\n"
      "node %b: float32[106] = aten.add_.Tensor(%x, %a) writes %x views %x\n"
      "output %a\n");
  Nodes nodes{kLong};
  PacedHost host(&nodes);
  const Group group{"g", GroupKind::kPointwise, graph.order};
  EXPECT_EQ(fused_is_faster(stream(), Effects(graph), graph, group, host), std::nullopt);
  EXPECT_EQ(nodes.hosts, 0);
}

TEST(VendorChoice, NothingRunsDuringACapture) {
  Nodes nodes{kLong};
  PacedHost host(&nodes);
  const Graph graph = chain("107");
  const auto chosen = [&] {
    return fused_is_faster(stream(), Effects(graph), graph, graph.groups[0], host);
  };
  const auto recording = device().make_recording(1);
  stream().begin_recording(recording);
  EXPECT_EQ(chosen(), std::nullopt);
  stream().end_recording();
  {
    const CommandCapture capture(stream());
    EXPECT_EQ(chosen(), std::nullopt);
    EXPECT_TRUE(capture.complete());
  }
  EXPECT_EQ(nodes.hosts, 0);
  EXPECT_EQ(chosen(), true);
}

TEST(VendorChoice, FailuresAreNobodys) {
  for (const graft_status status : {GRAFT_OUT_OF_MEMORY, GRAFT_INTERNAL, GRAFT_UNSUPPORTED}) {
    Error failure(status, "planned");
    Nodes nodes{kLong, &failure};
    EXPECT_EQ(choose(chain("108"), &nodes), std::nullopt) << status;
    EXPECT_EQ(nodes.asked, 1) << status;
    stream().synchronize();
  }
  Nodes nodes{kLong};
  EXPECT_EQ(choose(chain("108"), &nodes), true) << "another graph tries again";
}

TEST(VendorChoice, MemoryThatIsShortIsLeftAlone) {
  Nodes nodes{kLong};
  Allocator& memory = device().allocator();
  const MemoryStatistics before = memory.statistics();
  EXPECT_EQ(choose(chain("1000000, 1000000, 1000"), &nodes), std::nullopt);
  EXPECT_EQ(nodes.asked, 0);
  EXPECT_EQ(memory.statistics().num_ooms, before.num_ooms);
  EXPECT_EQ(memory.statistics().num_alloc_retries, before.num_alloc_retries);
}

TEST(VendorChoice, TheAllocatorSeesNothing) {
  Nodes nodes{kLong};
  Allocator& memory = device().allocator();
  memory.free(memory.allocate(16, stream()));  // its first segment
  memory.reset_peak();
  const MemoryStatistics before = memory.statistics();
  EXPECT_EQ(choose(chain("109, 1000"), &nodes), true);
  const MemoryStatistics after = memory.statistics();
  Block* const smallest = memory.allocate(16, stream());  // as for trying whether a kernel runs
  const auto tried = static_cast<int64_t>(smallest->capacity);
  memory.free(smallest);
  EXPECT_EQ(after.reserved_bytes.all().current, before.reserved_bytes.all().current);
  EXPECT_EQ(after.allocated_bytes.all().current, before.allocated_bytes.all().current);
  EXPECT_LE(after.allocated_bytes.all().peak, before.allocated_bytes.all().peak + tried);
}

class SlowHost : public TestHost {
 public:
  std::unique_ptr<ExecutionHost> beside() const override {
    return std::make_unique<PacedHost>(&nodes);
  }
  mutable Nodes nodes{kLong};
};

// Without a vendor's kernels every choice is a fused kernel, and nothing is measured.
// labels: own_operations
TEST(VendorChoice, TheExecutorFollowsIt) {
  const bool known = device().operations() != nullptr;
  const Graph graph = chain("110", "neg neg");
  const Tensors inputs = {{"v", graft::test::numbers(110, 1)}};
  const auto nodes_alone = [&](VendorKernels choice, std::chrono::milliseconds take) {
    SlowHost host;
    host.nodes.take = take;
    Executor executor(graph, host, stream(), choice);
    const Given given(graph, inputs);
    TensorView result;
    executor.run(given.arguments, {}, {&result, 1});
    EXPECT_TRUE(graft::test::near(elements(result), reference(graph, inputs)[0], 1e-6, 0));
    EXPECT_EQ(host.nodes.asked > 0, known && choice == VendorKernels::kMeasure);
    return executor.externals();
  };
  EXPECT_EQ(nodes_alone(VendorKernels::kAlways, kLong), known ? 2u : 0u);
  EXPECT_EQ(nodes_alone(VendorKernels::kAsSet, kLong), known ? 2u : 0u);
  EXPECT_EQ(nodes_alone(VendorKernels::kNever, kLong), 0u);
  EXPECT_EQ(nodes_alone(VendorKernels::kMeasure, kLong), 0u);
}

}  // namespace
}  // namespace graft::compiler::test
