// tests/runtime/stream/write_epochs_test.cpp: every command that writes watched memory counts, no
// other.
#include "runtime/stream/write_epochs.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/platform/device.h"
#include "runtime/platform/peer_copy.h"
#include "runtime/stream/recording.h"
#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/fake_graphs.h"

namespace graft {
namespace {

constexpr uint64_t kBytes = 4096;

class WriteEpochsTest : public testing::Test {
 protected:
  WriteEpochsTest() : stream_(fake_.open().default_stream()) {
    ours_ = device().allocator().allocate(kBytes, stream_);
    other_ = device().allocator().allocate(kBytes, stream_);
    watched_ = watch_writes(device(), ours_->address, kBytes);
  }
  ~WriteEpochsTest() override {
    watched_.reset();
    device().allocator().free(ours_);
    device().allocator().free(other_);
  }
  Device& device() { return fake_.device(); }
  void fill(graft_address to) { stream_.fill(to, 4, "abcd", 4); }
  void launch(graft_address address, uint32_t access) {
    const std::array arguments = {
        graft_argument{GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, ours_->address, 8},
        graft_argument{GRAFT_ARGUMENT_ADDRESS, 0, static_cast<uint8_t>(access), 0, address, 4}};
    stream_.launch(nullptr, 1, arguments);
  }
  // Whether the work moved the epoch on.
  template <class Work>
  bool counts(Work work) {
    const uint64_t before = watched_->epoch();
    work();
    return watched_->epoch() != before;
  }

  fake::Fake fake_;
  Stream& stream_;
  Block *ours_ = nullptr, *other_ = nullptr;
  std::shared_ptr<const WatchedMemory> watched_;
};

TEST_F(WriteEpochsTest, LaunchesCountByWhatTheyWrite) {
  const graft_address inside = ours_->address + 128;
  EXPECT_TRUE(counts([&] { launch(inside, GRAFT_ACCESS_WRITE); }));
  EXPECT_TRUE(counts([&] { launch(inside, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE); }));
  EXPECT_FALSE(counts([&] { launch(inside, GRAFT_ACCESS_READ); }));
  EXPECT_FALSE(counts([&] { launch(other_->address, GRAFT_ACCESS_WRITE); }));
  EXPECT_FALSE(counts([&] { launch(ours_->address + kBytes, GRAFT_ACCESS_WRITE); }));
  EXPECT_FALSE(counts([&] { launch(ours_->address - 1, GRAFT_ACCESS_WRITE); }));
}

TEST_F(WriteEpochsTest, CopiesAndFillsCountWhereTheyWrite) {
  std::vector<char> host(kBytes);
  const auto pointer = reinterpret_cast<uintptr_t>(host.data());
  EXPECT_TRUE(counts([&] { fill(ours_->address + kBytes - 4); }));
  EXPECT_FALSE(counts([&] { fill(other_->address); }));
  EXPECT_TRUE(counts([&] { stream_.copy(ours_->address, pointer, 4, GRAFT_HOST_TO_DEVICE); }));
  EXPECT_TRUE(
      counts([&] { stream_.copy(ours_->address, other_->address, 4, GRAFT_DEVICE_TO_DEVICE); }));
  EXPECT_FALSE(
      counts([&] { stream_.copy(other_->address, ours_->address, 4, GRAFT_DEVICE_TO_DEVICE); }));
  EXPECT_FALSE(counts([&] { stream_.copy(pointer, ours_->address, 4, GRAFT_DEVICE_TO_HOST); }));
  EXPECT_TRUE(
      counts([&] { peer_copy(stream_, device(), ours_->address, device(), other_->address, 4); }));
}

TEST_F(WriteEpochsTest, ReplaysCountAndCapturesDoNot) {
  const auto recording = device().make_recording(1);
  EXPECT_FALSE(counts([&] {
    stream_.begin_recording(recording);
    fill(ours_->address);
    launch(ours_->address, GRAFT_ACCESS_WRITE);
    stream_.end_recording();
  }));
  const uint64_t before = watched_->epoch();
  recording->replay(stream_);
  EXPECT_EQ(watched_->epoch(), before + 2);
}

TEST_F(WriteEpochsTest, ReplayOfALibrarysPlanWritesItsResult) {
  LibraryCommand command;
  command.run = [](graft_stream, graft_plan, const graft_execution*) { return GRAFT_OK; };
  const auto replayed = [&](graft_address written) {
    const auto recording = device().make_recording(1);
    stream_.begin_recording(recording);
    command.execution.tensors[2] = written;
    recording->add(command);
    stream_.end_recording();
    return counts([&] { recording->replay(stream_); });
  };
  EXPECT_TRUE(replayed(ours_->address));
  EXPECT_FALSE(replayed(other_->address));
}

TEST(WriteEpochsGraphsTest, ReplayOfADriversGraphWritesWhatItsCommandsWrite) {
  fake::Fake fake;
  fake::add_graphs();
  Device& device = fake.open();
  Block* const block = device.allocator().allocate(2 * kBytes, device.default_stream());
  const graft_address ours = block->address + kBytes, other = block->address;
  CommandList list;
  for (const graft_address to : {1000, 2000}) list.add(FillCommand{to, 4, "abcd", 4});
  EXPECT_TRUE(list.make_relative([](size_t i, graft_address) {
    return std::optional(graft_place{0, static_cast<uint32_t>(i), 0});
  }));
  list.make_graphs(device);
  const auto watched = watch_writes(device, ours, kBytes);
  for (const auto& [to, writes] : {std::pair(ours, 1u), std::pair(other, 0u)}) {
    const uint64_t before = watched->epoch();
    list.move_to(std::array{other, to});
    device.default_stream().replay(list);
    EXPECT_EQ(watched->epoch() - before, writes);
  }
  EXPECT_EQ(fake::graphs().launches, 2);
  device.allocator().free(block);
}

TEST_F(WriteEpochsTest, WatchersOfOneAllocationShareItsEpoch) {
  const auto again = watch_writes(device(), ours_->address, kBytes);
  EXPECT_EQ(again, watched_);
  watched_.reset();
  fill(ours_->address);
  EXPECT_EQ(again->epoch(), 1u);
  EXPECT_TRUE(again->held());
}

TEST_F(WriteEpochsTest, OtherThreadsAndStreamsCount) {
  EXPECT_TRUE(counts([&] {
    std::thread([&] { device().stream_from_pool(0).fill(ours_->address, 4, "abcd", 4); }).join();
  }));
}

TEST_F(WriteEpochsTest, OtherDevicesHaveAddressesOfTheirOwn) {
  Device& second = fake_.open_second();
  const auto there = watch_writes(second, ours_->address, kBytes);
  fill(ours_->address);
  EXPECT_EQ(there->epoch(), 0u);
  EXPECT_EQ(watched_->epoch(), 1u);
}

TEST_F(WriteEpochsTest, ReleasedMemoryIsSomebodyElses) {
  note_release(device(), ours_->address);
  EXPECT_FALSE(watched_->held());
  const auto next = watch_writes(device(), ours_->address, kBytes);
  EXPECT_TRUE(next->held());
  EXPECT_NE(next, watched_);
  EXPECT_FALSE(counts([&] { fill(ours_->address); }));
  EXPECT_EQ(next->epoch(), 1u);
}

TEST_F(WriteEpochsTest, AnOverlappingWatchEndsTheOlder) {
  const auto half = watch_writes(device(), ours_->address, kBytes / 2);
  EXPECT_FALSE(watched_->held());
  EXPECT_TRUE(half->held());
}

TEST_F(WriteEpochsTest, DistrustStays) {
  distrust(device(), other_->address);
  EXPECT_TRUE(watched_->trusted());
  distrust(device(), ours_->address + 8);
  EXPECT_FALSE(watched_->trusted());
  EXPECT_FALSE(watch_writes(device(), ours_->address, kBytes)->trusted());
}

TEST_F(WriteEpochsTest, ADistrustedDeviceIsSoForGood) {
  Device& second = fake_.open_second();
  const auto before = watch_writes(second, 4096, kBytes);
  distrust_device(second);
  EXPECT_FALSE(before->trusted());
  EXPECT_FALSE(watch_writes(second, 65536, kBytes)->trusted());
  EXPECT_TRUE(watched_->trusted());
}

TEST_F(WriteEpochsTest, NothingIsWatchedAfterTheLastWatcher) {
  EXPECT_TRUE(writes_are_watched());
  watched_.reset();
  EXPECT_FALSE(writes_are_watched());
  fill(ours_->address);
}

TEST_F(WriteEpochsTest, WritersAndWatchersMayRaceOnEachOther) {
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) fill(ours_->address);
  });
  for (int i = 0; i < 500; ++i) watch_writes(device(), other_->address, kBytes);
  writer.join();
  EXPECT_EQ(watched_->epoch(), 2000u);
}

}  // namespace
}  // namespace graft
