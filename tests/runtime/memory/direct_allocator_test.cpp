// tests/runtime/memory/direct_allocator_test.cpp: memory straight from the driver.
#include "runtime/memory/direct_allocator.h"

#include <gtest/gtest.h>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class DirectAllocatorTest : public testing::Test {
 protected:
  DirectAllocatorTest() : device_(fake_.open()), stream_(device_.default_stream()) {}

  fake::Fake fake_;
  Device& device_;
  Stream& stream_;
  DirectAllocator memory_{device_};
};

TEST_F(DirectAllocatorTest, FreeWaitsForEveryUser) {
  controls().hold = true;
  Stream& side = device_.stream_from_pool(0);
  Block* block = memory_.allocate(100, stream_);
  stream_.fill(block->address, 100, "a", 1);
  side.fill(block->address, 100, "b", 1);
  memory_.record_stream(block, side);
  memory_.free(block);
  EXPECT_EQ(stream_.handle()->done, 1u);
  EXPECT_EQ(side.handle()->done, 1u);
  EXPECT_EQ(controls().used, 0u);
}

TEST_F(DirectAllocatorTest, CountsFindsAndShows) {
  Block* block = memory_.allocate(100, stream_);
  EXPECT_EQ(memory_.find(block->address + 99), block);
  EXPECT_EQ(memory_.find(block->address + 100), nullptr);
  EXPECT_EQ(memory_.statistics().allocated_bytes.all().current, 100);
  EXPECT_EQ(memory_.snapshot().segments.size(), 1u);
  memory_.free(block);
  EXPECT_EQ(memory_.statistics().reserved_bytes.all().current, 0);
  EXPECT_EQ(memory_.statistics().num_device_free, 1);
}

TEST_F(DirectAllocatorTest, LimitIsOutOfMemory) {
  memory_.set_limit(150);
  Block* block = memory_.allocate(100, stream_);
  EXPECT_TRUE(has(error_of([&] { memory_.allocate(100, stream_); }), "may take 150 bytes"));
  EXPECT_EQ(controls().allocations, 1);
  memory_.free(block);
  memory_.free(memory_.allocate(150, stream_));
}

TEST_F(DirectAllocatorTest, RubbishAddressesAreRefused) {
  fake::Fake other;
  fake::table().memory_allocate = [](graft_device, uint64_t, graft_address* out) {
    return *out = 1001, GRAFT_OK;
  };
  Device& device = other.open();
  DirectAllocator memory(device);
  EXPECT_TRUE(has(error_of([&] { memory.allocate(8, device.default_stream()); }),
                  "memory_allocate gave the address 1001, expected a multiple of 256"));
  EXPECT_EQ(memory.statistics().reserved_bytes.all().current, 0);
}

}  // namespace
}  // namespace graft
