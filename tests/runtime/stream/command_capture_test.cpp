// tests/runtime/stream/command_capture_test.cpp: what a capture notes, and lists that are given
// again.
#include "runtime/stream/command_capture.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/platform/device.h"
#include "runtime/stream/event.h"
#include "runtime/stream/host_callback.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;

class CommandCaptureTest : public testing::Test {
 protected:
  CommandCaptureTest() : stream_(fake_.open().default_stream()) {
    for (Block*& block : blocks_) block = device().allocator().allocate(64, stream_);
  }
  ~CommandCaptureTest() override {
    for (Block* block : blocks_) device().allocator().free(block);
  }

  Device& device() { return fake_.device(); }
  void fill(graft_address to, uint32_t value) { stream_.fill(to, sizeof value, &value, 4); }
  uint32_t number(graft_address from) {
    uint32_t value = 0;
    stream_.read(&value, from, sizeof value);
    return value;
  }
  bool holds(const std::function<void()>& work) {
    const CommandCapture capture(stream_);
    work();
    return capture.complete();
  }

  fake::Fake fake_;
  Stream& stream_;
  Block* blocks_[3];
};

TEST_F(CommandCaptureTest, CommandsRunAndAreNoted) {
  const graft_address from = blocks_[0]->address, to = blocks_[1]->address;
  CommandList list;
  {
    CommandCapture capture(stream_);
    fill(from, 7);
    stream_.copy(to, from, 4, GRAFT_DEVICE_TO_DEVICE);
    EXPECT_TRUE(capture.complete());
    list = std::move(capture.commands);
  }
  EXPECT_EQ(number(to), 7u);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.counts().fills, 1u);
  fill(to, 0);
  const uint64_t copies = stream_.counts().copies;
  stream_.replay(list);
  EXPECT_EQ(stream_.counts().copies, copies + 1);
  EXPECT_EQ(number(to), 7u);
}

TEST_F(CommandCaptureTest, ListsMoveToOtherMemory) {
  CommandList list, more;
  const uint32_t seven = 7;
  list.add(FillCommand{1004, 4, &seven, 4});
  more.add(CopyCommand{2000, 1004, 4, GRAFT_DEVICE_TO_DEVICE});
  list.append(std::move(more));
  const auto locate = [](size_t command, graft_address address) -> std::optional<graft_place> {
    if (address < 2000) return graft_place{address - 1000, 0, 0};
    if (command == 1) return graft_place{address - 2000, 1, 0};
    return std::nullopt;
  };
  EXPECT_TRUE(list.make_relative(locate));
  for (Block* to : {blocks_[1], blocks_[2]}) {
    const graft_address bases[] = {blocks_[0]->address, to->address};
    list.move_to(bases);
    stream_.replay(list);
    EXPECT_EQ(number(to->address), 7u);
  }
  EXPECT_EQ(number(blocks_[0]->address + 4), 7u);
  CommandList unknown;
  unknown.add(FillCommand{2000, 4, &seven, 4});
  EXPECT_FALSE(unknown.make_relative(locate));
}

TEST_F(CommandCaptureTest, TemporariesLiveBetweenCommands) {
  CommandCapture capture(stream_);
  fill(blocks_[0]->address, 1);
  Block* block = device().allocator().allocate(256, stream_);
  fill(block->address, 2);
  EXPECT_FALSE(capture.complete());
  device().allocator().free(block);
  fill(blocks_[0]->address, 3);
  EXPECT_TRUE(capture.complete());
  ASSERT_EQ(capture.temporaries.size(), 1u);
  const CommandCapture::Temporary& one = capture.temporaries[0];
  EXPECT_EQ(one.bytes, 256u);
  EXPECT_EQ(one.first, 1u);
  EXPECT_EQ(one.last, 2u);
}

TEST_F(CommandCaptureTest, WhatCannotBeRepeatedSpoils) {
  const graft_address at = blocks_[0]->address;
  uint32_t host = 0;
  Stream& other = device().stream_from_pool(0);
  Event event(device(), false);
  EXPECT_TRUE(holds([&] { fill(at, 1); }));
  EXPECT_FALSE(holds([&] { stream_.synchronize(); }));
  EXPECT_FALSE(holds([&] { number(at); }));
  EXPECT_FALSE(
      holds([&] { stream_.copy(at, reinterpret_cast<uint64_t>(&host), 4, GRAFT_HOST_TO_DEVICE); }));
  EXPECT_FALSE(holds([&] { other.fill(at, 4, &host, 4); }));
  EXPECT_FALSE(holds([&] { event.record(stream_); }));
  EXPECT_FALSE(holds([&] { host_callback(stream_, [] {}); }));
  EXPECT_FALSE(holds([&] { const CommandCapture inside(stream_); }));
  EXPECT_FALSE(holds([&] {
    Block* block = device().allocator().allocate(64, other);
    device().allocator().free(block);
  }));
  stream_.synchronize();
  other.synchronize();
}

TEST_F(CommandCaptureTest, OtherThreadsAreNotNoted) {
  CommandCapture capture(stream_);
  std::thread([&] {
    fill(blocks_[0]->address, 1);
    stream_.synchronize();
  }).join();
  EXPECT_TRUE(capture.complete());
  EXPECT_EQ(capture.commands.size(), 0u);
}

TEST_F(CommandCaptureTest, ChecksAreArmedWithTheCommands) {
  int asked = 0;
  const auto check = [](Stream&, void* context) { ++*static_cast<int*>(context); };
  CommandList list;
  {
    CommandCapture capture(stream_);
    for (int i = 0; i < 2; ++i) stream_.arm({check, &asked});
    list = std::move(capture.commands);
  }
  EXPECT_EQ(list.checks().size(), 1u);
  stream_.synchronize();
  EXPECT_EQ(asked, 1);
  stream_.replay(list);
  stream_.synchronize();
  EXPECT_EQ(asked, 2);
}

TEST_F(CommandCaptureTest, ARefusedCommandThrowsAndTheStreamGoesOn) {
  CommandList list;
  const uint32_t seven = 7;
  list.add(FillCommand{blocks_[0]->address, 4, &seven, 4});
  controls().fail_now = GRAFT_INTERNAL;
  EXPECT_NE(error_of([&] { stream_.replay(list); }), "");
  stream_.replay(list);
  EXPECT_EQ(number(blocks_[0]->address), 7u);
}

}  // namespace
}  // namespace graft
