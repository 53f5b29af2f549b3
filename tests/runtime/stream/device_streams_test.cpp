// tests/runtime/stream/device_streams_test.cpp: the pool of a device's streams, and waits for all.
#include "runtime/stream/device_streams.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class DeviceStreamsTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(DeviceStreamsTest, PoolGoesRoundByPriority) {
  controls().properties.priority_highest = -2;
  DeviceStreams& streams = fake_.open().streams();
  std::set<Stream*> normal, urgent;
  for (int i = 0; i < 100; ++i) {
    normal.insert(&streams.from_pool(0));
    urgent.insert(&streams.from_pool(-9));
  }
  EXPECT_EQ(normal.size(), 32u);
  EXPECT_EQ(urgent.size(), 32u);
  for (Stream* stream : normal) EXPECT_EQ(stream->priority(), 0);
  for (Stream* stream : urgent) EXPECT_EQ(stream->priority(), -2);
  EXPECT_EQ(normal.count(&streams.default_stream()), 0u);
  EXPECT_EQ(streams.all().size(), 65u);
  for (Stream* stream : streams.all()) EXPECT_EQ(&streams.stream(stream->id()), stream);
}

TEST_F(DeviceStreamsTest, WidePriorityRangeIsShared) {
  controls().properties.priority_highest = -50;
  controls().properties.priority_lowest = 49;
  DeviceStreams& streams = fake_.open().streams();
  for (int priority = -60; priority < 60; ++priority) {
    const int given = streams.from_pool(priority).priority();
    EXPECT_GE(given, -50);
    EXPECT_LE(given, 49);
  }
  EXPECT_LE(streams.all().size(), 1u + 8 * 32);
}

TEST_F(DeviceStreamsTest, UnknownStreamIsRefused) {
  DeviceStreams& streams = fake_.open().streams();
  EXPECT_EQ(&streams.stream(0), &streams.default_stream());
  for (const int64_t id : {int64_t{-1}, int64_t{5}, int64_t{1} << 40}) {
    EXPECT_TRUE(has(error_of([&] { streams.stream(id); }), "has no stream with id"));
  }
}

TEST_F(DeviceStreamsTest, SynchronizeThrowsOneErrorPerStream) {
  DeviceStreams& streams = fake_.open().streams();
  Stream& one = streams.default_stream();
  Stream& two = streams.from_pool(0);
  controls().fail_late = GRAFT_TIMEOUT;
  one.launch(nullptr, 1, {});
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  two.launch(nullptr, 1, {});
  EXPECT_TRUE(has(error_of([&] { streams.synchronize(); }), "TIMEOUT"));
  EXPECT_TRUE(has(error_of([&] { streams.synchronize(); }), "LAUNCH_FAILED"));
  EXPECT_EQ(error_of([&] { streams.synchronize(); }), "");
  EXPECT_EQ(streams.counts().launches, 2u);
}

TEST_F(DeviceStreamsTest, StreamsKnowTheirSiblings) {
  DeviceStreams& streams = fake_.open().streams();
  Stream& other = streams.from_pool(0);
  EXPECT_EQ(&other.siblings(), &streams);
  EXPECT_EQ(&other.device(), &streams.device());
  EXPECT_EQ(&other.allocator(), &fake_.device().allocator());
}

TEST_F(DeviceStreamsTest, SettleKeepsErrorsWithTheirStreams) {
  DeviceStreams& streams = fake_.open().streams();
  Stream& other = streams.from_pool(0);
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  other.launch(nullptr, 1, {});
  EXPECT_TRUE(streams.settle());
  streams.settle_or_throw();
  EXPECT_EQ(error_of([&] { streams.default_stream().synchronize(); }), "");
  EXPECT_TRUE(has(error_of([&] { other.synchronize(); }), "LAUNCH_FAILED"));
}

}  // namespace
}  // namespace graft
