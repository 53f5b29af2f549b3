// tests/runtime/platform/device_test.cpp: its memory figures and its allocator.
#include "runtime/platform/device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;

class DeviceTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(DeviceTest, MemoryInfoWithoutTheSlotCountsOurOwn) {
  Device& device = fake_.open();
  EXPECT_EQ(device.memory_info().free, uint64_t{1} << 30);
  Block* block = device.allocator().allocate(1, device.default_stream());
  EXPECT_EQ(device.memory_info().total, uint64_t{1} << 30);
  EXPECT_EQ(device.memory_info().free, (uint64_t{1} << 30) - (2 << 20));
  device.allocator().free(block);
}

TEST_F(DeviceTest, CachingCanBeTurnedOff) {
  ::setenv("GRAFT_NO_CACHING", "1", 1);
  Device& device = fake_.open();
  ::unsetenv("GRAFT_NO_CACHING");
  device.allocator().free(device.allocator().allocate(100, device.default_stream()));
  EXPECT_EQ(controls().allocations, 1);
  EXPECT_EQ(controls().frees, 1);
  EXPECT_EQ(controls().used, 0u);
}

}  // namespace
}  // namespace graft
