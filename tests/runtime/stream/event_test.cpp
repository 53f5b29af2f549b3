// tests/runtime/stream/event_test.cpp: marks, waits and times between marks.
#include "runtime/stream/event.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class EventTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(EventTest, PassesWithItsStream) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  Event event(device, false);
  EXPECT_TRUE(event.query());
  EXPECT_FALSE(event.recorded());
  event.synchronize();
  controls().hold = true;
  stream.launch(nullptr, 1, {});
  event.record(stream);
  EXPECT_TRUE(event.recorded());
  EXPECT_FALSE(event.query());
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST_F(EventTest, SynchronizeThrowsALateErrorOnce) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  Event event(device, false);
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  {
    const OpScope scope("aten::exp");
    stream.launch(nullptr, 1, {});
  }
  event.record(stream);
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(has(error_of([&] { event.synchronize(); }), "aten::exp failed on graft:0"));
  EXPECT_EQ(error_of([&] { event.synchronize(); }), "");
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
}

TEST_F(EventTest, SettleLeavesTheErrorForTheStream) {
  Device& device = fake_.open();
  Event event(device, false);
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  device.default_stream().launch(nullptr, 1, {});
  event.record(device.default_stream());
  event.settle();
  EXPECT_TRUE(has(error_of([&] { device.synchronize(); }), "LAUNCH_FAILED"));
  EXPECT_EQ(error_of([&] { device.synchronize(); }), "");
}

TEST_F(EventTest, PollsWithoutTheSlot) {
  fake::remove_bounded_waits(fake::table());
  fake::table().event_synchronize = nullptr;
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  controls().hold = true;
  stream.launch(nullptr, 1, {});
  Event event(device, false);
  event.record(stream);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fake::release(stream);
  });
  event.synchronize();
  EXPECT_TRUE(event.query());
  later.join();
}

TEST_F(EventTest, MeasuresTime) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  Event start(device, true), end(device, true), plain(device, false);
  EXPECT_TRUE(has(error_of([&] { start.elapsed_ns(end); }), "must be recorded"));
  EXPECT_TRUE(has(error_of([&] { start.elapsed_ns(plain); }), "enable_timing"));
  start.record(stream);
  controls().clock_ns = 1500;
  controls().hold = true;
  stream.launch(nullptr, 1, {});
  end.record(stream);
  graft_status status = GRAFT_OK;
  error_of([&] { start.elapsed_ns(end); }, &status);
  EXPECT_EQ(status, GRAFT_BUSY);
  stream.synchronize();
  EXPECT_EQ(start.elapsed_ns(end), 1500);
}

TEST_F(EventTest, WithoutTimingSaysSo) {
  fake::table().event_elapsed = nullptr;
  Device& device = fake_.open();
  Event start(device, true), end(device, true);
  graft_status status = GRAFT_OK;
  EXPECT_TRUE(has(error_of([&] { start.elapsed_ns(end); }, &status),
                  "does not time events: its driver lacks event_elapsed"));
  EXPECT_EQ(status, GRAFT_UNSUPPORTED);
}

TEST_F(EventTest, StaysOnItsDevice) {
  Device& device = fake_.open();
  Device& other = fake_.open_second();
  Event event(device, false);
  EXPECT_TRUE(has(error_of([&] { event.record(other.default_stream()); }),
                  "graft:0 cannot be recorded on a stream of graft:1"));
}

TEST_F(EventTest, EveryHandleIsGivenBack) {
  const auto live = [] {
    return std::array<int, 3>{controls().live_events, controls().live_streams,
                              controls().live_devices};
  };
  const auto before = live();  // not 0 behind a test whose handles are a forked child's
  {
    Device& device = fake_.open();
    Event event(device, false);
    device.default_stream().query();
    EXPECT_NE(live(), before);
  }
  fake_.close();
  EXPECT_EQ(live(), before);
}

}  // namespace
}  // namespace graft
