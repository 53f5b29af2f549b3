// tests/compiler/run/captured_run_test.cpp: what runs after the noted one give again, and what not.
#include "compiler/run/captured_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <thread>

#include "compiler/passes/passes.h"
#include "compiler/run/executor.h"
#include "kernels/launch/workspace.h"
#include "kernels/norm/softmax.h"
#include "kernels/tensor/axes.h"
#include "tests/compiler/graph/text_builder.h"
#include "tests/compiler/run/device_host.h"

namespace graft::compiler::test {
// labels of the file: opencl_gpu torn_tables
namespace {

using graft::test::DeviceTensor;
using graft::test::near;
using graft::test::stream;

// Counts what it is asked, and computes softmax through memory of its own.
class CountingHost : public DeviceHost {
 public:
  void run(const ExternalCall& call, Stream& on) override {
    ++asked;
    if (meanwhile) meanwhile();
    const TensorView& from = call.operands[0];
    const Workspace first(on, extent_bytes(from));
    {
      const Workspace between(on, 3 * extent_bytes(from));
      on.copy(between.address() + 64, from.address, extent_bytes(from), GRAFT_DEVICE_TO_DEVICE);
      on.copy(first.address(), between.address() + 64, extent_bytes(from), GRAFT_DEVICE_TO_DEVICE);
    }
    TensorView copy = from;
    copy.address = first.address();
    softmax(on, call.results[0], copy, 1, false);
  }
  int asked = 0;
  std::function<void()> meanwhile;
};

const char* const kText =
    "input %x: float32[2, 32] activation\ninput %y: float32[2, 32] activation\n"
    "node %s: float32[2, 32] = aten.add.Tensor(%x, %y)\n"
    "node %t: float32[2, 32] = aten._softmax.default(%s, -1, false)\n"
    "node %u: float32[2, 32] = aten.softmax_of_nobody.default(%t)\n"
    "node %v: float32[2, 32] = aten.mul.Tensor(%u, 2.0)\noutput %v\noutput %t\n";

ExecutionInput argument(const TensorView& view) {
  ExecutionInput input;
  input.view = view;
  return input;
}

class CapturedRunTest : public testing::Test {
 protected:
  void compile(const std::string& text) {
    executor_.reset();
    Graph graph = graph_of(text);
    run_passes(graph, inference_passes());
    executor_ = std::make_unique<Executor>(graph, host_, stream());
  }

  std::vector<double> run(const TensorView& x, const TensorView& y) {
    const ExecutionInput inputs[] = {argument(x), argument(y)};
    TensorView results[2];
    executor_->run(inputs, {}, results);
    std::vector<float> data(64);
    stream().read(data.data(), results[0].address, 256);
    return {data.begin(), data.end()};
  }

  // Inputs in memory of their own, whose sum is what the numbers say.
  std::vector<double> run(double seed) {
    std::vector<double> x(64), y(64);
    for (size_t i = 0; i < 64; ++i) {
      x[i] = std::sin(seed + static_cast<double>(i)), y[i] = std::cos(2 * static_cast<double>(i));
    }
    for (const std::vector<double>* data : {&x, &y}) {
      kept_.push_back(std::make_unique<DeviceTensor>(std::vector<int64_t>{2, 32}, GRAFT_FLOAT32));
      kept_.back()->set(*data);
    }
    return run(kept_[kept_.size() - 2]->view(), kept_.back()->view());
  }

  CountingHost host_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<DeviceTensor>> kept_;
};

TEST_F(CapturedRunTest, LaterRunsAskTheHostNothing) {
  compile(kText);
  std::vector<std::vector<double>> expected;
  for (double seed : {1.0, 2.0}) expected.push_back(run(seed));
  EXPECT_EQ(host_.asked, 2);
  EXPECT_FALSE(near(expected[0], expected[1], 1e-3, 1e-3));
  const CommandCounts before = stream().counts();
  EXPECT_EQ(run(1.0), expected[0]);
  EXPECT_EQ(run(2.0), expected[1]);
  const CommandCounts after = stream().counts();
  const bool graphs = graft::test::device().driver().extension<graft_graphs_table>() != nullptr;
  EXPECT_EQ(after.launches - before.launches, graphs ? 0u : 6u);
  EXPECT_EQ(after.graphs - before.graphs, graphs ? 2u : 0u);
  EXPECT_EQ(after.in_graphs - before.in_graphs, graphs ? 6u : 0u);
  EXPECT_EQ(host_.asked, 2);
  EXPECT_GE(executor_->arena_bytes(), 4 * 256u);
}

TEST_F(CapturedRunTest, WhatDependsOnTheMomentIsAskedEachTime) {
  compile(kText);
  host_.meanwhile = [] { stream().synchronize(); };
  for (int i = 0; i < 4; ++i) run(1.0);
  EXPECT_EQ(host_.asked, 4);
  for (const char* effect : {" random", " opaque"}) {
    std::string text = kText;
    const std::string node = "aten.softmax_of_nobody.default(%t)";
    text.insert(text.find(node) + node.size(), effect);
    host_.meanwhile = nullptr, host_.asked = 0;
    compile(text);
    for (int i = 0; i < 4; ++i) run(1.0);
    EXPECT_EQ(host_.asked, 4) << effect;
  }
}

TEST_F(CapturedRunTest, MemoryThatStaysHeldIsNotForgotten) {
  compile(kText);
  std::vector<std::unique_ptr<Workspace>> held;
  host_.meanwhile = [&] { held.push_back(std::make_unique<Workspace>(stream(), 64)); };
  for (int i = 0; i < 4; ++i) run(1.0);
  EXPECT_EQ(host_.asked, 4);
}

TEST_F(CapturedRunTest, OtherThreadsCommandsAreNotNoted) {
  compile(kText);
  const std::vector<double> expected = run(1.0);
  DeviceTensor other({4}, GRAFT_FLOAT32);
  const auto fill = [&](uint32_t value) { stream().fill(other.view().address, 16, &value, 4); };
  host_.meanwhile = [&] { std::thread([&] { fill(0x3f800000); }).join(); };
  run(1.0);
  fill(0);
  EXPECT_EQ(run(1.0), expected);
  EXPECT_EQ(host_.asked, 2);
  EXPECT_EQ(other.get(), std::vector<double>(4, 0));
}

TEST_F(CapturedRunTest, InputsThatOverlapInAnotherWayRunAsBefore) {
  compile(kText);
  DeviceTensor wide({128}, GRAFT_FLOAT32), other({2, 32}, GRAFT_FLOAT32);
  std::vector<double> data(128), rest(64, 0.5);
  for (size_t i = 0; i < 128; ++i) data[i] = std::sin(static_cast<double>(i));
  wide.set(data), other.set(rest);
  TensorView x = other.view(), y = x, far = x;
  x.address = wide.view().address;
  y.address = x.address + 64;  // 16 elements on
  far.address = x.address + 128;
  run(x, y);
  const std::vector<double> expected = run(x, y);
  EXPECT_EQ(run(x, y), expected);
  EXPECT_EQ(host_.asked, 2);
  const std::vector<double> apart = run(x, other.view()), farther = run(x, far);
  EXPECT_EQ(host_.asked, 4);
  compile(kText);
  EXPECT_EQ(run(x, other.view()), apart);
  EXPECT_EQ(run(x, far), farther);
  EXPECT_FALSE(near(apart, farther, 1e-3, 1e-3));
}

TEST_F(CapturedRunTest, MemoryThatIsAlignedOtherwiseRunsAsBefore) {
  compile(kText);
  DeviceTensor wide({80}, GRAFT_FLOAT32), other({2, 32}, GRAFT_FLOAT32);
  std::vector<double> data(80);
  for (size_t i = 0; i < 80; ++i) data[i] = std::sin(static_cast<double>(i));
  wide.set(data), other.set(std::vector<double>(64, 0.5));
  TensorView x = other.view(), shifted = x;
  x.address = wide.view().address;
  shifted.address = x.address + 4;
  for (int i = 0; i < 3; ++i) run(x, other.view());
  EXPECT_EQ(host_.asked, 2);
  const std::vector<double> found = run(shifted, other.view());
  EXPECT_EQ(host_.asked, 3);
  compile(kText);
  EXPECT_EQ(run(shifted, other.view()), found);
}

TEST_F(CapturedRunTest, ARunThatFailsIsNotGivenAgain) {
  compile(kText);
  const std::vector<double> expected = run(1.0);
  host_.meanwhile = [] { throw std::runtime_error("no"); };
  EXPECT_THROW(run(1.0), std::runtime_error);
  host_.meanwhile = nullptr;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(1.0), expected);
  EXPECT_EQ(host_.asked, 3);
}

}  // namespace
}  // namespace graft::compiler::test
