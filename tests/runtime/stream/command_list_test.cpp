// tests/runtime/stream/command_list_test.cpp: which commands of a list a driver's graphs take.
#include "runtime/stream/command_list.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/driver/op_tag.h"
#include "runtime/platform/device.h"
#include "runtime/stream/recording.h"
#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/fake_graphs.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class Counter final : public RandomSource {
 public:
  RandomState advance(uint64_t blocks) override {
    return {0x500000003, std::exchange(next_, next_ + blocks)};
  }

 private:
  uint64_t next_ = 100;
};

// A vendor's kernel: notes its arguments, and fills the first one's memory with the plan's number.
graft_status run_operation(graft_stream stream, graft_plan plan, const graft_launch* launch) {
  const graft_status status = fake::table().kernel_launch(stream, nullptr, launch);
  if (status != GRAFT_OK) return status;
  const auto value = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(plan));
  return fake::table().fill(stream, launch->arguments[0].value, 4, &value, 4, launch->tag);
}

// On a driver that has graphs.
class CommandListTest : public testing::Test {
 protected:
  CommandListTest() {
    fake::add_graphs();
    stream_ = &fake_.open().default_stream();
    for (Block*& block : blocks_) block = device().allocator().allocate(4, *stream_);
  }
  ~CommandListTest() override {
    for (Block* block : blocks_) device().allocator().free(block);
  }

  Device& device() { return fake_.device(); }
  graft_address at(size_t block) { return blocks_[block]->address; }
  void fill(size_t block, uint32_t value) { stream_->fill(at(block), 4, &value, 4); }
  void copy(size_t to, size_t from) { stream_->copy(at(to), at(from), 4, GRAFT_DEVICE_TO_DEVICE); }
  uint32_t number(size_t block) {
    uint32_t value = 0;
    stream_->read(&value, at(block), sizeof value);
    return value;
  }
  void launch(uint64_t value) {
    const graft_argument argument = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, value, 8};
    stream_->launch(reinterpret_cast<graft_kernel>(this), 1, std::span(&argument, 1));
  }
  // Draws from offset on, behind an argument that stays.
  void launch_drawing(uint64_t offset) {
    graft_argument arguments[4] = {};
    for (graft_argument& one : arguments) one = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, 1, 8};
    arguments[3].value = offset;
    stream_->launch(nullptr, 1, {arguments, 1});
  }
  // An operation with a plan of that number.
  static OperationCommand operation(uintptr_t plan, const LaunchArguments& arguments,
                                    std::shared_ptr<const void> owner = nullptr) {
    return {&run_operation, reinterpret_cast<graft_plan>(plan), "softmax", arguments,
            std::move(owner)};
  }
  graft_argument written(size_t block) {
    return {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_WRITE, 0, at(block), 4};
  }
  void operate(size_t block, uintptr_t plan, std::shared_ptr<const void> owner = nullptr) {
    const graft_argument to = written(block);
    stream_->execute(operation(plan, {std::span(&to, 1)}, std::move(owner)));
  }
  // Draws from offset on, behind the block and an argument that stays.
  void operate_drawing(size_t block, uintptr_t plan, uint64_t offset) {
    graft_argument arguments[5] = {written(block)};
    for (graft_argument& one : std::span(arguments).subspan(1)) {
      one = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, 1, 8};
    }
    arguments[4].value = offset;
    stream_->execute(operation(plan, {arguments, 2}));
  }
  template <class Work>
  std::shared_ptr<Recording> record(Work work) {
    auto recording = device().make_recording(1);
    stream_->begin_recording(recording);
    work();
    stream_->end_recording();
    return recording;
  }

  fake::Fake fake_;
  Stream* stream_ = nullptr;
  Block* blocks_[2];
};

TEST_F(CommandListTest, TheDriverTakesAUsersGraphInOneCall) {
  auto recording = record([&] {
    fill(0, 7);
    launch(5);
    copy(1, 0);
  });
  EXPECT_EQ(fake::graphs().made, std::vector<size_t>{3});
  const CommandCounts before = stream_->counts();
  for (int i = 0; i < 2; ++i) {
    fill(0, 1), fill(1, 1);
    recording->replay(*stream_);
    EXPECT_EQ(number(1), 7u);
  }
  const CommandCounts after = stream_->counts();
  EXPECT_EQ(fake::graphs().launches, 2);
  EXPECT_EQ(after.graphs - before.graphs, 2u);
  EXPECT_EQ(after.in_graphs - before.in_graphs, 2u);
  EXPECT_EQ(after.launches - before.launches, 0u);
  EXPECT_EQ(after.fills - before.fills, 6u);
  EXPECT_EQ(after.copies - before.copies, 4u);
  recording.reset();
  EXPECT_EQ(fake::graphs().live, 0);
}

TEST_F(CommandListTest, WhatTheDriverMakesNoGraphOfIsQueuedOneByOne) {
  fake::graphs().refuses = GRAFT_UNSUPPORTED;
  const auto recording = record([&] {
    fill(0, 7);
    copy(1, 0);
    launch(5);
  });
  const CommandCounts before = stream_->counts();
  recording->replay(*stream_);
  EXPECT_EQ(number(1), 7u);
  EXPECT_EQ(stream_->counts().launches - before.launches, 1u);
  EXPECT_EQ(stream_->counts().graphs, before.graphs);
  EXPECT_EQ(fake::graphs().launches, 0);
}

// A launch that draws has other arguments in each replay, and graphs know no copies of the host.
TEST_F(CommandListTest, CommandsThatChangeStandBetweenGraphs) {
  uint32_t host = 3;
  const auto recording = record([&] {
    fill(0, 7);
    copy(1, 0);
    launch_drawing(stream_->recording()->draw(std::make_shared<Counter>(), 2));
    launch(5);
    launch(6);
    stream_->copy(at(0), reinterpret_cast<uintptr_t>(&host), 4, GRAFT_HOST_TO_DEVICE);
    launch_drawing(55);  // the same numbers in each replay
    launch(8);
    copy(1, 0);
  });
  EXPECT_EQ(fake::graphs().made, (std::vector<size_t>{2, 2, 3}));
  for (const uint64_t base : {100, 102}) {
    controls().arguments.clear();
    host += 10;
    recording->replay(*stream_);
    EXPECT_EQ(number(1), host);
    std::vector<uint64_t> values;
    for (const graft_argument& argument : controls().arguments) values.push_back(argument.value);
    EXPECT_EQ(values, (std::vector<uint64_t>{1, 3, 5, base, 5, 6, 1, 1, 1, 55, 8}));
  }
}

TEST_F(CommandListTest, ALateErrorNamesTheOperatorInTheGraph) {
  const auto recording = record([&] {
    const OpScope scope("aten::fill_");
    fill(0, 7), fill(1, 8);
  });
  controls().fail_late = GRAFT_INTERNAL;
  recording->replay(*stream_);
  EXPECT_TRUE(has(error_of([&] { stream_->synchronize(); }), "aten::fill_ failed on graft:0"));
  recording->replay(*stream_);
  EXPECT_EQ(number(1), 8u);
}

TEST_F(CommandListTest, ARefusedGraphThrowsAndTheStreamGoesOn) {
  const auto recording = record([&] { fill(0, 7), copy(1, 0); });
  controls().fail_now = GRAFT_IO;
  EXPECT_TRUE(
      has(error_of([&] { recording->replay(*stream_); }), "graph_launch failed on graft:0"));
  recording->replay(*stream_);
  EXPECT_EQ(number(1), 7u);
}

TEST_F(CommandListTest, TheDriversGraphTakesOperations) {
  fake::graphs().operate = &run_operation;
  const auto recording = record([&] {
    fill(0, 1);
    operate(0, 7);
    copy(1, 0);
  });
  EXPECT_EQ(fake::graphs().made, std::vector<size_t>{3});
  const CommandCounts before = stream_->counts();
  for (int i = 1; i <= 2; ++i) {
    fill(1, 2);
    recording->replay(*stream_);
    EXPECT_EQ(number(1), 7u);
    EXPECT_EQ(stream_->counts().in_graphs - before.in_graphs, uint64_t(i));
  }
  EXPECT_EQ(stream_->counts().launches, before.launches);
  EXPECT_EQ(fake::graphs().launches, 2);
}

TEST_F(CommandListTest, OperationsThatNoGraphTakesAreQueuedOneByOne) {
  uint32_t host = 3;
  const auto recording = record([&] {
    fill(0, 1);
    operate(0, 7);
    stream_->copy(at(1), reinterpret_cast<uintptr_t>(&host), 4, GRAFT_HOST_TO_DEVICE);
    launch(5);
    copy(1, 0);
  });
  EXPECT_EQ(fake::graphs().made, std::vector<size_t>{2});  // the commands without an operation
  const CommandCounts before = stream_->counts();
  for (int i = 1; i <= 2; ++i) {
    recording->replay(*stream_);
    EXPECT_EQ(number(1), 7u);
    EXPECT_EQ(stream_->counts().launches - before.launches, uint64_t(i));
    EXPECT_EQ(stream_->counts().in_graphs - before.in_graphs, uint64_t(i));
  }
}

// Whether a graph takes operations or not: one that draws stands beside it.
TEST_F(CommandListTest, OperationsDrawFreshNumbersInEachReplay) {
  for (const bool takes : {true, false}) {
    fake::graphs().operate = takes ? &run_operation : nullptr;
    const auto source = std::make_shared<Counter>();
    fake::graphs().made.clear();
    const auto recording = record([&] {
      fill(0, 1);
      operate(0, 6);
      operate_drawing(1, 7, stream_->recording()->draw(source, 3));
      operate_drawing(0, 8, stream_->recording()->draw(source, 4));
    });
    EXPECT_EQ(fake::graphs().made, takes ? std::vector<size_t>{2} : std::vector<size_t>{});
    for (const uint64_t base : {100, 107}) {
      controls().arguments.clear();
      recording->replay(*stream_);
      EXPECT_EQ(number(0), 8u);
      EXPECT_EQ(number(1), 7u);
      std::vector<uint64_t> values;
      for (const graft_argument& argument : controls().arguments) values.push_back(argument.value);
      EXPECT_EQ(values,
                (std::vector<uint64_t>{at(0), at(1), 1, 3, 5, base, at(0), 1, 3, 5, base + 3}));
    }
  }
}

TEST_F(CommandListTest, OperationsRunAtTheAddressesOfEachReplay) {
  for (const bool takes : {true, false}) {
    fake::graphs().operate = takes ? &run_operation : nullptr;
    fake::graphs().made.clear();
    const graft_argument to = written(0);
    CommandList commands;
    commands.add(CopyCommand{at(0), at(1), 4, GRAFT_DEVICE_TO_DEVICE});
    commands.add(operation(7, {std::span(&to, 1)}));
    const auto locate = [&](size_t, graft_address address) {
      return graft_place{address - at(address == at(0) ? 0 : 1), address == at(0) ? 0u : 1u, 0};
    };
    ASSERT_TRUE(commands.make_relative(locate));
    commands.make_graphs(device());
    EXPECT_EQ(fake::graphs().made.size(), takes ? 1u : 0u);
    for (const size_t block : {0, 1}) {
      fill(0, 1), fill(1, 1);
      commands.move_to(std::array{at(block), at(1 - block)});
      stream_->replay(commands, {});
      EXPECT_EQ(number(block), 7u) << takes;
      EXPECT_EQ(number(1 - block), 1u) << takes;
    }
  }
}

TEST_F(CommandListTest, APlanLivesAsLongAsTheListThatRunsIt) {
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> kept = owner;
  auto recording = record([&] { operate(0, 7, std::move(owner)); });
  recording->replay(*stream_);
  EXPECT_FALSE(kept.expired());
  recording.reset();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace graft
