// tests/drivers/opencl/event_test.cpp: events mark points in streams and tell times.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

void pause(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

TEST(OpenclEvent, IsDoneUntilItIsRecorded) {
  Session s;
  graft_event event = s.new_event();
  EXPECT_EQ(driver().event_query(event), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize(event), GRAFT_OK);
  EXPECT_EQ(driver().host_callback(s.stream, pause, nullptr), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().event_query(event), GRAFT_BUSY);
  EXPECT_EQ(driver().event_synchronize(event), GRAFT_OK);
  EXPECT_EQ(driver().event_query(event), GRAFT_OK);
}

TEST(OpenclEvent, TellsTheTimeBetweenTwo) {
  if (reran({"A=1", old_loader("version:1.2")})) return;
  Session s;
  graft_kernel spin = s.kernel("spin");
  const graft_address x = s.put({1});
  graft_event begin = s.new_event(true), end = s.new_event(true);
  EXPECT_EQ(driver().event_record(begin, s.stream), GRAFT_OK);
  EXPECT_EQ(s.launch(spin, 1, {address(x, 4), scalar(5000000)}), GRAFT_OK);
  EXPECT_EQ(driver().event_record(end, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize(end), GRAFT_OK);
  int64_t ns = 0;
  ASSERT_EQ(driver().event_elapsed(begin, end, &ns), GRAFT_OK) << last_message();
  EXPECT_GT(ns, 1000000);
  EXPECT_LT(ns, 60000000000);
}

TEST(OpenclEvent, TimesThatTheDeviceDoesNotTellAreUnsupported) {
  if (reran({fake("fail:clGetEventProfilingInfo:0:-7")})) return;
  Session s;
  graft_event begin = s.new_event(true), end = s.new_event(true);
  EXPECT_EQ(driver().event_record(begin, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().event_record(end, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize(end), GRAFT_OK);
  int64_t ns = 77;
  EXPECT_EQ(driver().event_elapsed(begin, end, &ns), GRAFT_UNSUPPORTED);
  EXPECT_EQ(ns, 77);
}

TEST(OpenclEvent, WithoutProfilingThereAreNoTimes) {
  if (reran({"GRAFT_OPENCL_PROFILING=0"})) return;
  Session s;
  graft_event event = s.new_event(true);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  int64_t ns = 0;
  EXPECT_EQ(driver().event_elapsed(event, event, &ns), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message().find("GRAFT_OPENCL_PROFILING"), std::string::npos) << last_message();
}

}  // namespace
}  // namespace graft::opencl_test
