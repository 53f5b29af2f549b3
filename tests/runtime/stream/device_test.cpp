// tests/runtime/stream/device_test.cpp: opening, the stream pool, memory figures.
#include "runtime/stream/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class DeviceTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(DeviceTest, PoolGoesRoundByPriority) {
  controls().properties.priority_highest = -2;
  Device& device = fake_.open();
  std::set<Stream*> normal, urgent;
  for (int i = 0; i < 100; ++i) {
    normal.insert(&device.stream_from_pool(0));
    urgent.insert(&device.stream_from_pool(-9));
  }
  EXPECT_EQ(normal.size(), 32u);
  EXPECT_EQ(urgent.size(), 32u);
  for (Stream* stream : normal) EXPECT_EQ(stream->priority(), 0);
  for (Stream* stream : urgent) EXPECT_EQ(stream->priority(), -2);
  EXPECT_EQ(normal.count(&device.default_stream()), 0u);
  EXPECT_EQ(device.streams().size(), 65u);
  for (Stream* stream : device.streams()) EXPECT_EQ(&device.stream(stream->id()), stream);
}

TEST_F(DeviceTest, WidePriorityRangeIsShared) {
  controls().properties.priority_highest = -50;
  controls().properties.priority_lowest = 49;
  Device& device = fake_.open();
  for (int priority = -60; priority < 60; ++priority) {
    const int given = device.stream_from_pool(priority).priority();
    EXPECT_GE(given, -50);
    EXPECT_LE(given, 49);
  }
  EXPECT_LE(device.streams().size(), 1u + 8 * 32);
}

TEST_F(DeviceTest, UnknownStreamIsRefused) {
  Device& device = fake_.open();
  EXPECT_EQ(&device.stream(0), &device.default_stream());
  for (const int64_t id : {int64_t{-1}, int64_t{5}, int64_t{1} << 40}) {
    EXPECT_TRUE(has(error_of([&] { device.stream(id); }), "has no stream with id"));
  }
}

TEST_F(DeviceTest, SynchronizeThrowsOneErrorPerStream) {
  Device& device = fake_.open();
  Stream& one = device.default_stream();
  Stream& two = device.stream_from_pool(0);
  controls().fail_late = GRAFT_TIMEOUT;
  one.launch(nullptr, 1, {});
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  two.launch(nullptr, 1, {});
  EXPECT_TRUE(has(error_of([&] { device.synchronize(); }), "TIMEOUT"));
  EXPECT_TRUE(has(error_of([&] { device.synchronize(); }), "LAUNCH_FAILED"));
  EXPECT_EQ(error_of([&] { device.synchronize(); }), "");
  EXPECT_EQ(device.launches(), 2u);
}

TEST_F(DeviceTest, MemoryInfoWithoutTheSlotCountsOurOwn) {
  Device& device = fake_.open();
  EXPECT_EQ(device.memory_info().free, uint64_t{1} << 30);
  Block* block = device.allocator().allocate(1, device.default_stream());
  EXPECT_EQ(device.memory_info().total, uint64_t{1} << 30);
  EXPECT_EQ(device.memory_info().free, (uint64_t{1} << 30) - (2 << 20));
  device.allocator().free(block);
}

TEST_F(DeviceTest, OpenFailuresAreErrors) {
  controls().message = "no licence";
  fake::table().device_open = [](uint32_t, graft_device*) { return GRAFT_IO; };
  EXPECT_EQ(error_of([&] { fake_.open(); }),
            "device_open failed on graft:0 (driver 'fake'): IO: no licence");
  fake::table().device_open = [](uint32_t, graft_device*) { return GRAFT_OK; };
  EXPECT_TRUE(has(error_of([&] { fake_.open(); }), "returned OK but no device"));
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
