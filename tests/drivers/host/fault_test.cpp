// tests/drivers/host/fault_test.cpp: planted faults surface where GRAFT_HOST_FAULTS says.
#include <gtest/gtest.h>

#include "driver.h"
#include "graft/extensions.h"

namespace graft::host_test {
namespace {

const char kSet[] =
    "typedef union { void* address; unsigned long bits; } argument;\n"
    "void set(const argument* a, unsigned long b, unsigned long e) { *(int*)a[0].address = 1; }\n";

TEST(HostFault, ThirdAllocationFails) {
  if (reran({"GRAFT_HOST_FAULTS=alloc:3"})) return;
  Session s;
  s.allocate(16);
  s.allocate(16);
  graft_address address = 0;
  EXPECT_EQ(driver().memory_allocate(s.device, 16, &address), GRAFT_OUT_OF_MEMORY);
  s.allocate(16);
}

TEST(HostFault, SomeAllocationsFail) {
  if (reran({"GRAFT_HOST_FAULTS=alloc:0.1"})) return;
  Session s;
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {
    graft_address address = 0;
    if (driver().memory_allocate(s.device, 16, &address) != GRAFT_OK) ++failed;
    if (address != 0) driver().memory_free(s.device, address);
  }
  EXPECT_GT(failed, 50);
  EXPECT_LT(failed, 200);
}

TEST(HostFault, SecondLaunchFails) {
  if (reran({"GRAFT_HOST_FAULTS=launch:2"})) return;
  Session s;
  graft_address a = s.allocate(4);
  graft_kernel kernel = s.kernel(kSet, "set");
  EXPECT_EQ(s.launch(kernel, 1, {address(a, 4)}), GRAFT_OK);
  EXPECT_EQ(s.launch(kernel, 1, {address(a, 4)}), GRAFT_LAUNCH_FAILED);
  EXPECT_EQ(s.launch(kernel, 1, {address(a, 4)}), GRAFT_OK);
}

TEST(HostFault, LaunchesWriteNothing) {
  if (reran({"GRAFT_HOST_FAULTS=launch:drop"})) return;
  Session s;
  graft_address a = s.allocate(4);
  int value = 77;
  s.upload(a, &value, 4);
  graft_kernel kernel = s.kernel(kSet, "set");
  EXPECT_EQ(s.launch(kernel, 1, {address(a, 4)}), GRAFT_OK);
  EXPECT_EQ(s.launch(kernel, 1000, {address(a, 4)}), GRAFT_OK);
  EXPECT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 77);
}

// The error comes late, once, with the tag, and spreads through an event.
TEST(HostFault, SecondCopyFails) {
  if (reran({"GRAFT_HOST_FAULTS=copy:2", "GRAFT_HOST_FAULTS=copy:2 GRAFT_HOST_MODE=async"})) return;
  Session s;
  graft_stream other = s.new_stream();
  graft_address a = s.allocate(64);
  std::vector<char> host(64);
  auto copy = [&](uint32_t tag) {
    return driver().copy(s.stream, a, reinterpret_cast<uint64_t>(host.data()), 64,
                         GRAFT_HOST_TO_DEVICE, tag);
  };
  ASSERT_EQ(copy(5), GRAFT_OK);
  ASSERT_EQ(copy(6), GRAFT_OK);
  ASSERT_EQ(copy(7), GRAFT_OK);
  graft_event event = nullptr;
  driver().event_create(s.device, 0, &event);
  driver().event_record(event, s.stream);
  driver().stream_wait_event(other, event);
  for (graft_stream stream : {s.stream, other}) {
    EXPECT_EQ(driver().stream_synchronize(stream), GRAFT_INTERNAL);
    EXPECT_NE(last_message().find("copy failed"), std::string::npos);
    uint32_t tag = 0;
    char text[200];
    ASSERT_EQ(driver().stream_error(stream, &tag, text, sizeof text), GRAFT_OK);
    EXPECT_EQ(tag, 6u);
    EXPECT_NE(std::string(text).find("copy failed"), std::string::npos);
    EXPECT_EQ(driver().stream_synchronize(stream), GRAFT_OK);
  }
  EXPECT_EQ(driver().event_synchronize(event), GRAFT_OK);
  driver().event_destroy(event);
}

TEST(HostFault, ErrorsAfterTheFirstAreCounted) {
  if (reran({"GRAFT_HOST_FAULTS=copy:0.999"})) return;
  Session s;
  graft_address a = s.allocate(4);
  int value = 1;
  for (uint32_t tag = 1; tag <= 3; ++tag) {
    ASSERT_EQ(driver().copy(s.stream, a, reinterpret_cast<uint64_t>(&value), 4,
                            GRAFT_HOST_TO_DEVICE, tag),
              GRAFT_OK);
  }
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_INTERNAL);
  uint32_t tag = 0;
  char text[200];
  ASSERT_EQ(driver().stream_error(s.stream, &tag, text, sizeof text), GRAFT_OK);
  EXPECT_EQ(tag, 1u);
  EXPECT_NE(std::string(text).find("(2 more failed after it)"), std::string::npos) << text;
}

// Its stream stays busy, others work, and the process ends with status 0.
TEST(HostFault, CommandsNeverEnd) {
  if (reran({"GRAFT_HOST_FAULTS=copy:hang3,launch:hang2",
             "GRAFT_HOST_FAULTS=copy:hang3,launch:hang2 GRAFT_HOST_MODE=async",
             "GRAFT_HOST_FAULTS=copy:hang3,launch:hang2 GRAFT_HOST_MODE=inline"})) {
    return;
  }
  // Never given back: destroying one would wait for it, and a device that has streams is not
  // closed.
  static graft_stream copies = nullptr, launches = nullptr;
  static Session& s = *new Session;
  ASSERT_EQ(driver().stream_create(s.device, 0, &copies), GRAFT_OK);
  ASSERT_EQ(driver().stream_create(s.device, 0, &launches), GRAFT_OK);
  graft_address a = s.allocate(4);
  int value = 5;
  ASSERT_EQ(s.upload(a, &value, 4), GRAFT_OK);
  ASSERT_EQ(s.download(&value, a, 4), GRAFT_OK);
  ASSERT_EQ(
      driver().copy(copies, a, reinterpret_cast<uint64_t>(&value), 4, GRAFT_HOST_TO_DEVICE, 0),
      GRAFT_OK);
  graft_kernel kernel = s.kernel(kSet, "set");
  const graft_argument argument = address(a, 4);
  graft_launch launch = {sizeof launch, 0, {1, 1, 1}, {1, 1, 1}, 1, &argument};
  ASSERT_EQ(driver().kernel_launch(s.stream, kernel, &launch), GRAFT_OK);
  ASSERT_EQ(driver().kernel_launch(launches, kernel, &launch), GRAFT_OK);
  for (graft_stream stream : {copies, launches}) {
    EXPECT_EQ(driver().stream_synchronize_within(stream, 10000000), GRAFT_BUSY);
    EXPECT_EQ(driver().stream_query(stream), GRAFT_BUSY);
  }
  EXPECT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 1);
}

TEST(HostFault, DeviceIsLost) {
  if (reran({"GRAFT_HOST_FAULTS=lost:3", "GRAFT_HOST_FAULTS=lost:3 GRAFT_HOST_MODE=async"})) return;
  Session s;
  graft_address a = s.allocate(64);
  int value = 1;
  EXPECT_EQ(s.upload(a, &value, 4), GRAFT_OK);
  EXPECT_EQ(s.upload(a, &value, 4), GRAFT_OK);
  EXPECT_EQ(s.upload(a, &value, 4), GRAFT_DEVICE_LOST);
  EXPECT_NE(last_message().find("lost"), std::string::npos);
  EXPECT_EQ(s.upload(a, &value, 4), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  graft_address b = 0;
  EXPECT_EQ(driver().memory_allocate(s.device, 64, &b), GRAFT_DEVICE_LOST);
}

TEST(HostFault, CompilingFails) {
  if (reran({"GRAFT_HOST_FAULTS=compile:1"})) return;
  Session s;
  graft_sink sink = {nullptr, [](void*, const void*, size_t) {}};
  EXPECT_EQ(driver().program_compile(s.device, kSet, sizeof kSet - 1, "", sink),
            GRAFT_COMPILE_ERROR);
  EXPECT_EQ(driver().program_compile(s.device, kSet, sizeof kSet - 1, "", sink), GRAFT_OK);
}

TEST(HostFault, SecondStreamFails) {
  if (reran({"GRAFT_HOST_FAULTS=alloc:9,stream:2"})) return;
  Session s;
  graft_stream stream = nullptr;
  EXPECT_EQ(driver().stream_create(s.device, 0, &stream), GRAFT_INTERNAL);
  EXPECT_EQ(driver().stream_create(s.device, 0, &stream), GRAFT_OK);
  driver().stream_destroy(stream);
}

}  // namespace
}  // namespace graft::host_test
