// tests/runtime/memory/caching_allocator_test.cpp: sizes, splitting, joining, reuse, limits and
// figures.
#include "runtime/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/memory/chosen_pool.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

constexpr uint64_t kMiB = 1 << 20;

class CachingAllocatorTest : public testing::Test {
 protected:
  CachingAllocatorTest() : device_(fake_.open()), stream_(device_.default_stream()) {}
  Allocator& memory() { return device_.allocator(); }
  Block* allocate(uint64_t bytes) { return memory().allocate(bytes, stream_); }

  fake::Fake fake_;
  Device& device_;
  Stream& stream_;
};

TEST_F(CachingAllocatorTest, RoundsSizesAndAligns) {
  Block* one = allocate(1);
  Block* two = allocate(513);
  EXPECT_EQ(one->capacity, 512u);
  EXPECT_EQ(two->capacity, 1024u);
  EXPECT_EQ(two->bytes, 513u);
  EXPECT_EQ(two->address, one->address + 512);
  EXPECT_EQ(one->address % 256, 0u);
  memory().free(one);
  memory().free(two);
}

TEST_F(CachingAllocatorTest, ReusesInStreamOrderWithoutTheDriver) {
  controls().hold = true;
  Block* first = allocate(4000);
  const graft_address address = first->address;
  stream_.fill(address, 4000, "a", 1);
  memory().free(first);
  Block* again = allocate(4000);
  EXPECT_EQ(again->address, address);
  EXPECT_EQ(controls().allocations, 1);
  EXPECT_FALSE(stream_.query());
  memory().free(again);
}

TEST_F(CachingAllocatorTest, AChosenPoolKeepsItsMemoryToItselfForEachStream) {
  constexpr uint64_t kPool = 7;
  Stream& other = device_.stream_from_pool(0);
  const auto address = [&](Stream& stream) {
    Block* block = memory().allocate(4000, stream);
    const graft_address found = block->address;
    memory().free(block);
    return found;
  };
  memory().retain_pool(kPool);
  EXPECT_EQ(choose_pool(device_, kPool), 0u);
  const graft_address inside = address(stream_);
  EXPECT_EQ(address(stream_), inside);
  EXPECT_NE(address(other), inside);
  graft_address elsewhere = inside;
  std::thread([&] { elsewhere = address(stream_); }).join();
  EXPECT_NE(elsewhere, inside);
  EXPECT_EQ(choose_pool(device_, 0), kPool);
  EXPECT_EQ(address(stream_), elsewhere);
  memory().empty_cache();
  EXPECT_NE(address(stream_), inside);
  EXPECT_EQ(choose_pool(device_, kPool), 0u);
  EXPECT_EQ(address(stream_), inside);
  choose_pool(device_, 0);
  memory().release_pool(kPool);
  memory().empty_cache();
  EXPECT_EQ(memory().statistics().reserved_bytes.all().current, 0);
}

TEST_F(CachingAllocatorTest, StreamsHaveTheirOwnPools) {
  Block* first = allocate(4000);
  const graft_address address = first->address;
  memory().free(first);
  Block* other = memory().allocate(4000, device_.stream_from_pool(0));
  EXPECT_NE(other->address, address);
  EXPECT_EQ(controls().allocations, 2);
  memory().free(other);
}

TEST_F(CachingAllocatorTest, JoinsNeighboursInAnyOrder) {
  for (const std::array<int, 3> order :
       {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2}, std::array{2, 1, 0}}) {
    Block* blocks[3] = {allocate(300000), allocate(300000), allocate(300000)};
    const graft_address start = blocks[0]->address;
    for (const int i : order) memory().free(blocks[i]);
    EXPECT_EQ(memory().largest_cached(), 2 * kMiB);
    Block* whole = allocate(kMiB);
    EXPECT_EQ(whole->address, start);
    memory().free(whole);
  }
  EXPECT_EQ(controls().allocations, 1);
}

TEST_F(CachingAllocatorTest, LargeBlocksComeFromLargeSegments) {
  Block* three = allocate(3 * kMiB);
  Block* thirty = allocate(30 * kMiB + 1);
  EXPECT_EQ(memory().statistics().reserved_bytes.all().current, int64_t(52 * kMiB));
  EXPECT_EQ(memory().statistics().segment.pools[kLargePool].current, 2);
  EXPECT_EQ(memory().statistics().segment.pools[kSmallPool].current, 0);
  memory().free(three);
  memory().free(thirty);
  memory().empty_cache();
  EXPECT_EQ(controls().used, 0u);
}

TEST_F(CachingAllocatorTest, EqualBlocksLeaveNothingOfTheirSegments) {
  constexpr uint64_t kBytes = 19 * kMiB / 8;
  std::vector<Block*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocate(kBytes));
  const MemoryStatistics now = memory().statistics();
  EXPECT_EQ(now.segment.all().current, 2);
  EXPECT_EQ(now.reserved_bytes.all().current, int64_t(16 * kBytes));
  EXPECT_EQ(now.allocated_bytes.all().current, int64_t(16 * kBytes));
  for (Block* block : blocks) memory().free(block);
}

TEST_F(CachingAllocatorTest, WhatALargeBlockLeavesJoinsItsNeighbour) {
  Block* const first = allocate(3 * kMiB);
  Block* const second = allocate(3 * kMiB);
  Block* const third = allocate(3 * kMiB);
  memory().free(first);
  Block* const smaller = allocate(2 * kMiB + 512 * 1024);
  EXPECT_EQ(smaller->address, first->address);
  EXPECT_EQ(memory().statistics().allocated_bytes.all().current, int64_t(17 * kMiB / 2));
  memory().free(second);
  Block* const larger = allocate(3 * kMiB + 512 * 1024);
  EXPECT_EQ(larger->address, smaller->address + smaller->capacity);
  for (Block* block : {smaller, larger, third}) memory().free(block);
  EXPECT_EQ(controls().allocations, 1);
}

TEST_F(CachingAllocatorTest, LargeSegmentsMakeRoomForLargerOnes) {
  Block* kept = allocate(24 * kMiB);
  Block* small = allocate(15 * kMiB);
  Block* blocks[2] = {allocate(30 * kMiB), allocate(40 * kMiB)};
  for (Block* block : blocks) memory().free(block);
  memory().free(small);
  Block* larger = allocate(50 * kMiB);
  const int64_t kept_bytes = (24 + 16) * kMiB;
  EXPECT_EQ(memory().statistics().reserved_bytes.all().current, kept_bytes + int64_t(50 * kMiB));
  EXPECT_EQ(memory().statistics().reserved_bytes.all().peak, kept_bytes + int64_t(70 * kMiB));
  memory().free(larger);
  const int allocations = controls().allocations;
  Block* parts[2] = {allocate(30 * kMiB), allocate(18 * kMiB)};
  EXPECT_EQ(controls().allocations, allocations);
  for (Block* block : parts) memory().free(block);
  memory().free(kept);
}

TEST_F(CachingAllocatorTest, OtherStreamsDelayReuse) {
  controls().hold = true;
  Stream& side = device_.stream_from_pool(0);
  Block* block = allocate(4000);
  const graft_address address = block->address;
  side.fill(address, 4000, "a", 1);
  memory().record_stream(block, side);
  memory().record_stream(block, side);
  memory().record_stream(block, stream_);
  memory().free(block);
  EXPECT_EQ(memory().statistics().allocation.all().current, 0);
  EXPECT_EQ(memory().statistics().active.all().current, 1);
  Block* next = allocate(4000);
  EXPECT_NE(next->address, address);
  fake::release(side);
  Block* reused = allocate(4000);
  EXPECT_EQ(reused->address, address);
  memory().free(next);
  memory().free(reused);
}

TEST_F(CachingAllocatorTest, FailedCommandsCountAsDone) {
  Stream& side = device_.stream_from_pool(0);
  Block* block = allocate(4000);
  const graft_address address = block->address;
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  side.launch(nullptr, 1, {});
  memory().record_stream(block, side);
  memory().free(block);
  Block* reused = allocate(4000);
  EXPECT_EQ(reused->address, address);
  memory().free(reused);
  memory().empty_cache();
  EXPECT_TRUE(has(error_of([&] { side.synchronize(); }), "LAUNCH_FAILED"));
}

TEST_F(CachingAllocatorTest, EmptyingTheCacheWaitsForTheStream) {
  controls().hold = true;
  Block* block = allocate(4000);
  stream_.fill(block->address, 4000, "a", 1);
  controls().fail_late = GRAFT_TIMEOUT;
  stream_.launch(nullptr, 1, {});
  memory().free(block);
  memory().empty_cache();
  EXPECT_EQ(controls().used, 0u);
  EXPECT_EQ(stream_.handle()->done, 2u);
  EXPECT_TRUE(has(error_of([&] { stream_.synchronize(); }), "TIMEOUT"));
}

TEST_F(CachingAllocatorTest, OutOfMemoryEmptiesTheCacheFirst) {
  controls().memory = 64 * kMiB;
  Block* blocks[2] = {allocate(18 * kMiB), allocate(18 * kMiB)};
  for (Block* block : blocks) memory().free(block);
  Block* larger = allocate(50 * kMiB);
  EXPECT_EQ(memory().statistics().num_alloc_retries, 1);
  EXPECT_EQ(memory().statistics().num_ooms, 0);
  memory().free(larger);
}

TEST_F(CachingAllocatorTest, OutOfMemoryWaitsForPendingBlocks) {
  controls().memory = 64 * kMiB;
  controls().hold = true;
  Stream& side = device_.stream_from_pool(0);
  Block* large = allocate(40 * kMiB);
  side.fill(large->address, 8, "a", 1);
  memory().record_stream(large, side);
  memory().free(large);
  Block* again = allocate(40 * kMiB);
  EXPECT_EQ(side.handle()->done, 1u);
  memory().free(again);
}

TEST_F(CachingAllocatorTest, SmallMemoryIsUsedUpExactly) {
  controls().memory = 3 * kMiB;
  Block* first = allocate(2 * kMiB);
  Block* second = allocate(kMiB);
  EXPECT_EQ(controls().used, 3 * kMiB);
  memory().free(first);
  memory().free(second);
}

TEST_F(CachingAllocatorTest, OutOfMemoryTellsTheFigures) {
  Block* held = allocate(100 * kMiB);
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { allocate(2048 * kMiB); }, &status);
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
  EXPECT_TRUE(has(text,
                  "Tried to allocate 2.00 GiB. graft:0 (driver 'fake') has a total of "
                  "1.00 GiB of which 924.00 MiB is free; 100.00 MiB is allocated by "
                  "tensors, 0 bytes is reserved but unallocated."));
  EXPECT_TRUE(has(text, "empty_cache"));
  EXPECT_EQ(memory().statistics().num_ooms, 1);
  error_of([&] { allocate(~uint64_t{0}); }, &status);
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
  memory().free(held);
}

TEST_F(CachingAllocatorTest, LimitHoldsAndCanBeLifted) {
  memory().set_limit(8 * kMiB);
  Block* held = allocate(6 * kMiB);
  EXPECT_TRUE(has(error_of([&] { allocate(4 * kMiB); }), "may take 8.00 MiB"));
  EXPECT_EQ(memory().limit(), 8 * kMiB);
  memory().set_limit(0);
  memory().free(allocate(4 * kMiB));
  memory().free(held);
}

TEST_F(CachingAllocatorTest, FiguresAndPeaks) {
  Block* block = allocate(1000);
  const MemoryStatistics now = memory().statistics();
  EXPECT_EQ(now.allocated_bytes.all().current, 1024);
  EXPECT_EQ(now.requested_bytes.all().current, 1000);
  EXPECT_EQ(now.inactive_split.pools[kSmallPool].current, 1);
  EXPECT_EQ(now.inactive_split_bytes.all().current, int64_t(2 * kMiB - 1024));
  memory().free(block);
  EXPECT_EQ(memory().statistics().inactive_split.all().current, 0);
  EXPECT_EQ(memory().statistics().allocated_bytes.all().peak, 1024);
  memory().reset_peak();
  EXPECT_EQ(memory().statistics().allocated_bytes.all().peak, 0);
  EXPECT_EQ(memory().statistics().allocated_bytes.all().freed, 1024);
  Block* held = allocate(3000);
  memory().free(allocate(5000));
  memory().reset_peak();
  EXPECT_EQ(memory().statistics().allocated_bytes.all().peak, 3072) << "what is there counts";
  memory().free(held);
  memory().reset_accumulated();
  EXPECT_EQ(memory().statistics().allocated_bytes.all().freed, 0);
}

TEST_F(CachingAllocatorTest, HistoryAndSnapshotCarryContexts) {
  memory().record_history(4, [] { return MemoryContext(std::make_shared<std::string>("here")); });
  Block* block = allocate(1000);
  const MemorySnapshot snapshot = memory().snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  ASSERT_EQ(snapshot.segments[0].blocks.size(), 2u);
  EXPECT_EQ(snapshot.segments[0].blocks[0].requested, 1000u);
  EXPECT_EQ(*std::static_pointer_cast<std::string>(snapshot.segments[0].blocks[0].context), "here");
  EXPECT_EQ(snapshot.segments[0].blocks[1].state, BlockState::kInactive);
  memory().free(block);
  std::string actions;
  for (const MemoryRecord& record : memory().snapshot().history) {
    actions += std::string(action_name(record.action)) + " ";
  }
  EXPECT_EQ(actions, "segment_alloc alloc free_requested free_completed ");
  memory().free(allocate(8));
  EXPECT_EQ(memory().snapshot().history.size(), 4u);
  memory().record_history(0, nullptr);
  EXPECT_TRUE(memory().snapshot().history.empty());
}

TEST_F(CachingAllocatorTest, FindsHeldBlocksOnly) {
  Block* first = allocate(600);
  Block* second = allocate(600);
  EXPECT_EQ(memory().find(first->address), first);
  EXPECT_EQ(memory().find(second->address + 1023), second);
  EXPECT_EQ(memory().find(second->address + 1024), nullptr);
  EXPECT_EQ(memory().find(1), nullptr);
  memory().free(first);
  EXPECT_EQ(memory().find(second->address - 1), nullptr);
  memory().free(second);
}

}  // namespace
}  // namespace graft
