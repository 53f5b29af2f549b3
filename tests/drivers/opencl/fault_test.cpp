// tests/drivers/opencl/fault_test.cpp: late errors, lost devices and forked processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

// The second upload of a session fails after it was queued.
std::vector<std::string> late_second_upload() {
  return {fake("late:clEnqueueSVMMemcpy:2:-5"), fake("no_svm,late:clEnqueueWriteBuffer:2:-5"),
          fake("no_svm,usm,late:clEnqueueMemcpyINTEL:2:-5"),
          old_loader("version:1.2,late:clEnqueueWriteBuffer:2:-9999")};
}

TEST(OpenclFault, ALateErrorIsToldOnceWithItsTag) {
  if (reran(late_second_upload())) return;
  Session s;
  const graft_address x = s.put({1});
  const int two = 2;
  EXPECT_EQ(s.upload(x, &two, 4, 42), GRAFT_OK) << last_message();
  EXPECT_EQ(s.upload(x, &two, 4, 43), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_LAUNCH_FAILED);
  uint32_t tag = 0;
  char text[256] = "";
  EXPECT_EQ(driver().stream_error(s.stream, &tag, text, sizeof text), GRAFT_OK);
  EXPECT_EQ(tag, 42u);
  EXPECT_NE(std::string(text), "");
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK) << last_message();
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

TEST(OpenclFault, ALateErrorIsSeenByQuery) {
  if (reran(late_second_upload())) return;
  Session s;
  const graft_address x = s.put({1});
  const int two = 2;
  EXPECT_EQ(s.upload(x, &two, 4), GRAFT_OK);
  graft_status status = GRAFT_BUSY;
  while (status == GRAFT_BUSY) status = driver().stream_query(s.stream);
  EXPECT_EQ(status, GRAFT_LAUNCH_FAILED);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
}

TEST(OpenclFault, ALateErrorSpreadsToWaiters) {
  if (reran(late_second_upload())) return;
  Session s;
  const graft_address x = s.put({1});
  const int two = 2;
  graft_stream waiting = s.new_stream();
  graft_event event = s.new_event();
  EXPECT_EQ(s.upload(x, &two, 4), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().stream_wait_event(waiting, event), GRAFT_OK);
  EXPECT_NE(driver().stream_synchronize(waiting), GRAFT_OK);
  EXPECT_NE(driver().event_query(event), GRAFT_BUSY);
}

TEST(OpenclFault, AKernelThatFailsLateNamesItsLaunch) {
  if (reran({fake("late:clEnqueueNDRangeKernel:1:-5")})) return;
  Session s;
  const graft_address x = s.put({1});
  graft_kernel add = s.kernel("add_n");
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}, 1, 99), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_LAUNCH_FAILED);
  uint32_t tag = 0;
  EXPECT_EQ(driver().stream_error(s.stream, &tag, nullptr, 0), GRAFT_OK);
  EXPECT_EQ(tag, 99u);
}

void expect_lost(Session& s, graft_address x) {
  int value = 5;
  graft_address address = 0;
  graft_stream stream = nullptr;
  graft_event event = nullptr;
  uint64_t left = 0, total = 0;
  EXPECT_EQ(s.upload(x, &value, 4), GRAFT_DEVICE_LOST);
  EXPECT_EQ(
      driver().copy(s.stream, reinterpret_cast<uint64_t>(&value), x, 4, GRAFT_DEVICE_TO_HOST, 0),
      GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().fill(s.stream, x, 4, &value, 4, 0), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().memory_allocate(s.device, 64, &address), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_create(s.device, 0, &stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().event_create(s.device, 0, &event), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().memory_info(s.device, &left, &total), GRAFT_DEVICE_LOST);
  EXPECT_NE(last_message().find("lost"), std::string::npos) << last_message();
  s.compile(kKernels, GRAFT_DEVICE_LOST);
}

// The session gives everything back at its end, which must neither fail loudly nor hang.
TEST(OpenclFault, ALostDeviceStaysLost) {
  if (reran({fake("lost_after:8"), fake("lost_after:8:-5"), fake("lost_after:8:-36"),
             fake("lost_after:8,no_svm"), fake("lost_after:8:-5,no_svm"),
             fake("lost_after:8:-5,no_svm,usm"), fake("lost_after:8:-5,no_svm,address"),
             old_loader("version:1.2,lost_after:8")})) {
    return;
  }
  Session s;
  const graft_address x = s.put({1});
  const int value = 2;
  graft_status status = GRAFT_OK;
  for (int i = 0; i < 20 && status == GRAFT_OK; ++i) status = s.upload(x, &value, 4);
  EXPECT_EQ(status, GRAFT_DEVICE_LOST) << last_message();
  expect_lost(s, x);
}

TEST(OpenclFault, ADeviceLostByACommandStaysLost) {
  if (reran(
          {fake("late:clEnqueueSVMMemcpy:2:-2"), fake("no_svm,late:clEnqueueWriteBuffer:2:-2")})) {
    return;
  }
  Session s;
  const graft_address x = s.put({1});
  const int value = 2;
  EXPECT_EQ(s.upload(x, &value, 4), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  expect_lost(s, x);
}

TEST(OpenclFault, AForkedChildIsToldSo) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  const graft_address x = s.put({1});
  const pid_t child = fork();
  if (child == 0) {
    int value = 0;
    graft_address address = 0;
    bool right = s.upload(x, &value, 4) == GRAFT_DEVICE_LOST &&
                 last_message().find("spawn") != std::string::npos &&
                 driver().memory_allocate(s.device, 4, &address) == GRAFT_DEVICE_LOST &&
                 driver().memory_free(s.device, x) == GRAFT_OK &&
                 driver().stream_destroy(s.stream) == GRAFT_OK;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(s.get(x, 1), std::vector<int>{1});
}

}  // namespace
}  // namespace graft::opencl_test
