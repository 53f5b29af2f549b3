// tests/runtime/memory/pinned_allocator_test.cpp: pinned host memory, its reuse and its fallback.
#include "runtime/memory/pinned_allocator.h"

#include <gtest/gtest.h>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class PinnedAllocatorTest : public testing::Test {
 protected:
  // Gives the driver the two slots.
  static void pin() {
    fake::table().host_allocate = [](graft_device, uint64_t bytes, void** out) {
      if (bytes > (uint64_t{1} << 20)) return GRAFT_OUT_OF_MEMORY;
      ++controls().host_allocations;
      return *out = std::malloc(bytes), GRAFT_OK;
    };
    fake::table().host_free = [](graft_device, void* pointer) {
      ++controls().host_frees;
      return std::free(pointer), GRAFT_OK;
    };
  }

  fake::Fake fake_;
};

TEST_F(PinnedAllocatorTest, ReusesBySizeClass) {
  pin();
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  PinnedBlock* first = memory.allocate(5000);
  EXPECT_EQ(first->capacity, 8192u);
  void* const pointer = first->pointer;
  memory.free(first);
  PinnedBlock* second = memory.allocate(8000);
  EXPECT_EQ(second->pointer, pointer);
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 8192);
  memory.free(second);
  memory.empty_cache();
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 0);
  EXPECT_EQ(controls().host_allocations, 1);
  EXPECT_EQ(controls().host_frees, 1);
}

TEST_F(PinnedAllocatorTest, PeaksAndSumsStartAnew) {
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  PinnedBlock* block = memory.allocate(1024);
  memory.free(memory.allocate(512));
  EXPECT_EQ(memory.statistics().allocation.peak, 2);
  EXPECT_EQ(memory.statistics().allocated_bytes.allocated, 1536);
  memory.reset_peak();
  memory.reset_accumulated();
  const PinnedAllocator::Statistics now = memory.statistics();
  EXPECT_EQ(now.allocation.peak, 1);
  EXPECT_EQ(now.allocated_bytes.current, 1024);
  EXPECT_EQ(now.allocated_bytes.peak, 1024);
  EXPECT_EQ(now.allocated_bytes.allocated, 0);
  EXPECT_EQ(now.allocated_bytes.freed, 0);
  EXPECT_EQ(now.segment.current, 2);
  memory.free(block);
}

TEST_F(PinnedAllocatorTest, CopiesDelayReuse) {
  pin();
  Device& device = fake_.open();
  PinnedAllocator& memory = device.pinned_allocator();
  controls().hold = true;
  PinnedBlock* block = memory.allocate(512);
  void* const pointer = block->pointer;
  device.default_stream().launch(nullptr, 1, {});
  memory.record_stream(block, device.default_stream());
  memory.free(block);
  PinnedBlock* other = memory.allocate(512);
  EXPECT_NE(other->pointer, pointer);
  device.synchronize();
  PinnedBlock* again = memory.allocate(512);
  EXPECT_EQ(again->pointer, pointer);
  memory.free(other);
  memory.free(again);
}

TEST_F(PinnedAllocatorTest, RetainedMemoryGoesToNobody) {
  pin();
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  PinnedBlock* block = memory.allocate(512);
  void* const pointer = block->pointer;
  auto first = memory.retain(block), second = memory.retain(block);
  memory.free(block);
  EXPECT_EQ(memory.find(pointer), nullptr);
  memory.empty_cache();
  EXPECT_EQ(controls().host_frees, 0);
  first.reset();
  PinnedBlock* other = memory.allocate(512);
  EXPECT_NE(other->pointer, pointer);
  second.reset();
  PinnedBlock* again = memory.allocate(512);
  EXPECT_EQ(again->pointer, pointer);
  second = memory.retain(again);
  second.reset();
  EXPECT_EQ(memory.find(pointer), again) << "its holder still has it";
  memory.free(other);
  memory.free(again);
}

TEST_F(PinnedAllocatorTest, AFreeInsideACaptureWaitsForEarlierCopies) {
  pin();
  Device& device = fake_.open();
  PinnedAllocator& memory = device.pinned_allocator();
  Stream& stream = device.default_stream();
  controls().hold = true;
  PinnedBlock* block = memory.allocate(512);
  stream.launch(nullptr, 1, {});
  memory.record_stream(block, stream);
  stream.begin_recording(device.make_recording(1));
  memory.free(block);
  EXPECT_EQ(stream.handle()->done, 1u);
  stream.end_recording();
}

TEST_F(PinnedAllocatorTest, FindsHeldMemoryOnly) {
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  PinnedBlock* block = memory.allocate(100);
  char* const start = static_cast<char*>(block->pointer);
  EXPECT_EQ(memory.find(start), block);
  EXPECT_EQ(memory.find(start + 99), block);
  EXPECT_EQ(memory.find(start - 1), nullptr);
  EXPECT_EQ(memory.find(&memory), nullptr);
  memory.free(block);
  EXPECT_EQ(memory.find(start), nullptr);
}

TEST_F(PinnedAllocatorTest, WithoutTheSlotsMemoryIsOrdinaryAndAligned) {
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  PinnedBlock* block = memory.allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block->pointer) % 4096, 0u);
  std::memset(block->pointer, 1, block->capacity);
  memory.free(block);
}

TEST_F(PinnedAllocatorTest, OutOfMemoryEmptiesTheCacheThenSaysSo) {
  pin();
  PinnedAllocator& memory = fake_.open().pinned_allocator();
  memory.free(memory.allocate(512));
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { memory.allocate(2 << 20); }, &status);
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
  EXPECT_TRUE(has(text, "Tried to pin 2.00 MiB of host memory for graft:0 (driver 'fake')"));
  EXPECT_EQ(controls().host_frees, 1);
  error_of([&] { memory.allocate(~uint64_t{0}); }, &status);
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace graft
