// tests/runtime/stream/command_list_test.cpp: which commands of a list a driver's graphs take.
#include "runtime/stream/command_list.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace graft
