// tests/drivers/opencl/backlog_test.cpp: commands that OpenCL gets after their call returned.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

// Every kind of memory, and one where each command goes to OpenCL at its call.
std::vector<std::string> every_way() {
  std::vector<std::string> ways = every_memory();
  ways.push_back("GRAFT_OPENCL_THREAD=0");
  return ways;
}

TEST(OpenclBacklog, KeepsTheOrderOfAllKindsOfCommands) {
  if (reran(every_way())) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({0, 0}), y = s.put({7, 7});
  const int zero = 0, hundred = 100;
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(driver().fill(s.stream, x, 8, &zero, 4, 0), GRAFT_OK);
    for (int n = 1; n <= 20; ++n) {
      EXPECT_EQ(s.launch(add, 2, {address(x, 8), scalar(n)}), GRAFT_OK);
    }
    EXPECT_EQ(driver().copy(s.stream, y, x, 8, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK);
    EXPECT_EQ(s.upload(y, &hundred, 4), GRAFT_OK);
    EXPECT_EQ(s.launch(add, 2, {address(y, 8), scalar(round)}), GRAFT_OK);
  }
  EXPECT_EQ(s.get(y, 2), (std::vector<int>{149, 259}));
  EXPECT_EQ(s.get(x, 2), (std::vector<int>{210, 210}));
}

// More than the backlog holds at once.
TEST(OpenclBacklog, AFullBacklogLosesNothing) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  graft_kernel add = s.kernel("add_n"), spin = s.kernel("spin");
  const graft_address x = s.put({0}), y = s.put({0});
  EXPECT_EQ(s.launch(spin, 1, {address(y, 4), scalar(20'000'000)}), GRAFT_OK);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK) << last_message();
  }
  EXPECT_EQ(s.get(x, 1), std::vector<int>{10'000});
}

// The host sees fine-grained memory, which PoCL has.
TEST(OpenclBacklog, RunsWithoutAWait) {
  if (reran({"GRAFT_OPENCL_MEMORY=svm-fine"})) return;
  Session s;
  graft_kernel add = s.kernel("add_n"), spin = s.kernel("spin");
  const graft_address x = s.put({0}), y = s.put({0});
  EXPECT_EQ(s.launch(spin, 1, {address(y, 4), scalar(1'000'000)}), GRAFT_OK);
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(3)}), GRAFT_OK);
  void* view = nullptr;
  ASSERT_EQ(driver().memory_host_view(s.device, x, 4, &view), GRAFT_OK) << last_message();
  int seen = 0;
  for (int i = 0; i < 5000 && seen != 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::memcpy(&seen, view, sizeof seen);
  }
  EXPECT_EQ(seen, 3);
}

TEST(OpenclBacklog, AMarkStandsBehindWhatWasHandedOver) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  graft_kernel add = s.kernel("add_n"), spin = s.kernel("spin");
  const graft_address x = s.put({0}), y = s.put({0});
  const graft_stream first = s.stream, second = s.new_stream();
  graft_event event = s.new_event();
  for (int i = 0; i < 20; ++i) {
    s.stream = first;
    EXPECT_EQ(s.launch(spin, 1, {address(y, 4), scalar(100'000)}), GRAFT_OK);
    EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
    EXPECT_EQ(driver().event_record(event, first), GRAFT_OK);
    EXPECT_EQ(driver().stream_wait_event(second, event), GRAFT_OK);
    s.stream = second;
    EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
    EXPECT_EQ(driver().event_record(event, second), GRAFT_OK);
    EXPECT_EQ(driver().stream_wait_event(first, event), GRAFT_OK);
  }
  EXPECT_EQ(driver().event_synchronize(event), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{40});
  s.stream = first;
}

TEST(OpenclBacklog, StreamsEndWithTheirCommands) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({0});
  const graft_stream own = s.stream;
  for (int i = 0; i < 20; ++i) {
    graft_stream stream = nullptr;
    ASSERT_EQ(driver().stream_create(s.device, 0, &stream), GRAFT_OK) << last_message();
    s.stream = stream;
    for (int n = 0; n < 10; ++n) s.launch(add, 1, {address(x, 4), scalar(1)});
    EXPECT_EQ(driver().stream_destroy(stream), GRAFT_OK);
  }
  s.stream = own;
  EXPECT_EQ(s.get(x, 1), std::vector<int>{200});
}

// Whoever has the handle queues behind the driver's back, so nothing may be left behind.
TEST(OpenclBacklog, HandingOutTheQueueEndsIt) {
  if (reran({fake("fail:clEnqueueNDRangeKernel:3:-5")})) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({0});
  uint64_t handle = 0;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(driver().stream_native_handle(s.stream, &handle), GRAFT_OK);
  EXPECT_NE(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

}  // namespace
}  // namespace graft::opencl_test
