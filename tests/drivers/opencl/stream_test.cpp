// tests/drivers/opencl/stream_test.cpp: streams keep their order and wait for one another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

void pause(void* milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(*static_cast<int*>(milliseconds)));
}

TEST(OpenclStream, IsBusyUntilItsWorkIsDone) {
  if (reran({"A=1", fake("no_svm"), old_loader("version:1.2")})) return;
  Session s;
  int ms = 150;
  const graft_address x = s.put({1});
  EXPECT_EQ(driver().host_callback(s.stream, pause, &ms), GRAFT_OK);
  const int two = 2;
  EXPECT_EQ(s.upload(x, &two, 4), GRAFT_OK);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

TEST(OpenclStream, WaitsNoLongerThanAsked) {
  if (reran({"A=1", fake("no_svm"), old_loader("version:1.2")})) return;
  Session s;
  int ms = 300;
  graft_event event = s.new_event();
  const graft_address x = s.put({1});
  EXPECT_EQ(driver().stream_synchronize_within(s.stream, 0), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize_within(event, 0), GRAFT_OK);
  EXPECT_EQ(driver().host_callback(s.stream, pause, &ms), GRAFT_OK);
  const int two = 2;
  EXPECT_EQ(s.upload(x, &two, 4), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  for (const uint64_t ns : {0, 1, 20000000}) {
    EXPECT_EQ(driver().stream_synchronize_within(s.stream, ns), GRAFT_BUSY);
    EXPECT_EQ(driver().event_synchronize_within(event, ns), GRAFT_BUSY);
  }
  EXPECT_EQ(driver().event_synchronize_within(event, 60000000000), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize_within(s.stream, 60000000000), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

TEST(OpenclStream, WaitsForAnother) {
  if (reran({"A=1", fake("no_svm"), old_loader("version:1.2")})) return;
  Session s;
  int ms = 100;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({1});
  graft_stream first = s.stream, second = s.new_stream();
  graft_event event = s.new_event();
  EXPECT_EQ(driver().host_callback(first, pause, &ms), GRAFT_OK);
  const int ten = 10;
  EXPECT_EQ(s.upload(x, &ten, 4), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, first), GRAFT_OK);
  EXPECT_EQ(driver().stream_wait_event(second, event), GRAFT_OK);
  s.stream = second;
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(5)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{15});
}

// OpenCL's events do not leave their context: the host carries the wait over. Not with PoCL's
// device "basic": where a user event ends, it runs what waited under the lock that this needs.
TEST(OpenclStream, WaitsForAStreamOfAnotherDevice) {
  if (reran(
          {"POCL_DEVICES='pthread pthread'", fake("no_svm") + " POCL_DEVICES='pthread pthread'"})) {
    return;
  }
  Session a(0), b(1);
  int ms = 100;
  std::atomic<bool> paused{false};
  graft_event event = a.new_event();
  EXPECT_EQ(driver().host_callback(a.stream, pause, &ms), GRAFT_OK);
  EXPECT_EQ(
      driver().host_callback(
          a.stream, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &paused),
      GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, a.stream), GRAFT_OK);
  EXPECT_EQ(driver().stream_wait_event(b.stream, event), GRAFT_OK);
  const graft_address x = b.allocate(4);
  const int value = 3;
  EXPECT_EQ(b.upload(x, &value, 4), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(b.stream), GRAFT_OK);
  EXPECT_TRUE(paused.load());
}

TEST(OpenclStream, PrioritiesOutsideTheRangeAreRefused) {
  Session s;
  graft_stream stream = nullptr;
  EXPECT_EQ(driver().stream_create(s.device, 100, &stream), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(stream, nullptr);
}

TEST(OpenclStream, AQueueThatFailsIsNoStream) {
  if (reran({fake("fail:clCreateCommandQueue:3:-6")})) return;
  Session s;
  graft_stream stream = nullptr;
  EXPECT_NE(driver().stream_create(s.device, 0, &stream), GRAFT_OK);
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(s.get(s.put({1}), 1), std::vector<int>{1});
}

}  // namespace
}  // namespace graft::opencl_test
