// tests/drivers/host/stream_test.cpp: order within and across streams, events, callbacks, errors.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "driver.h"

namespace graft::host_test {
namespace {

using std::chrono::milliseconds;

// Holds a stream up until it is opened.
struct Gate {
  std::atomic<bool> open{false}, left{false};
  static void wait(void* gate) {
    static_cast<Gate*>(gate)->open.wait(false);
    static_cast<Gate*>(gate)->left.store(true);
  }
  // Returns when nobody reads the gate any more.
  void release() {
    open.store(true);
    open.notify_all();
    while (!left.load()) std::this_thread::yield();
  }
};

TEST(HostStream, RunsCommandsInOrder) {
  Session s;
  graft_address a = s.allocate(4);
  Gate gate;
  ASSERT_EQ(driver().host_callback(s.stream, Gate::wait, &gate), GRAFT_OK);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(driver().fill(s.stream, a, 4, &i, 4, 0), GRAFT_OK);
  }
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  gate.release();
  uint32_t value = 0;
  ASSERT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 999u);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
}

TEST(HostStream, WaitsNoLongerThanAsked) {
  Session s;
  graft_event event = nullptr;
  ASSERT_EQ(driver().event_create(s.device, 0, &event), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize_within(s.stream, 0), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize_within(event, 0), GRAFT_OK);
  Gate gate;
  driver().host_callback(s.stream, Gate::wait, &gate);
  driver().event_record(event, s.stream);
  const auto begin = std::chrono::steady_clock::now();
  for (const uint64_t ns : {0, 1, 20000000}) {
    EXPECT_EQ(driver().stream_synchronize_within(s.stream, ns), GRAFT_BUSY);
    EXPECT_EQ(driver().event_synchronize_within(event, ns), GRAFT_BUSY);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    gate.release();
  });
  EXPECT_EQ(driver().event_synchronize_within(event, 60000000000), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize_within(s.stream, 60000000000), GRAFT_OK);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
  opener.join();
  driver().event_destroy(event);
}

TEST(HostStream, DoesNotWaitForAnother) {
  Session s;
  graft_stream other = s.new_stream();
  Gate gate;
  driver().host_callback(s.stream, Gate::wait, &gate);
  graft_address a = s.allocate(4);
  uint32_t value = 5;
  ASSERT_EQ(driver().fill(other, a, 4, &value, 4, 0), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(other), GRAFT_OK);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  gate.release();
}

TEST(HostStream, IsIdleOnceTheEventAtItsEndIsDone) {
  Session s;
  graft_event event = nullptr;
  ASSERT_EQ(driver().event_create(s.device, 0, &event), GRAFT_OK);
  for (int i = 0; i < 50; ++i) {
    Gate gate;
    ASSERT_EQ(driver().host_callback(s.stream, Gate::wait, &gate), GRAFT_OK);
    ASSERT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
    // To wake it holds the worker up between the mark and the end of its command.
    std::thread waiter([&] { driver().event_synchronize(event); });
    std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
    gate.release();
    while (driver().event_query(event) == GRAFT_BUSY) {
    }
    EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
    waiter.join();
  }
  driver().event_destroy(event);
}

TEST(HostStream, HasAHandleOfItsOwn) {
  Session s;
  uint64_t first = 0, again = 0, other = 0;
  ASSERT_EQ(driver().stream_native_handle(s.stream, &first), GRAFT_OK);
  ASSERT_EQ(driver().stream_native_handle(s.stream, &again), GRAFT_OK);
  ASSERT_EQ(driver().stream_native_handle(s.new_stream(), &other), GRAFT_OK);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  EXPECT_EQ(driver().stream_native_handle(nullptr, &first), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().stream_native_handle(s.stream, nullptr), GRAFT_INVALID_ARGUMENT);
}

TEST(HostStream, WaitsForAnEventOfAnother) {
  Session s;
  graft_stream other = s.new_stream();
  graft_event event = nullptr;
  ASSERT_EQ(driver().event_create(s.device, 0, &event), GRAFT_OK);
  EXPECT_EQ(driver().event_query(event), GRAFT_OK);
  graft_address a = s.allocate(4);
  uint32_t one = 1, two = 2;
  Gate gate;
  driver().host_callback(s.stream, Gate::wait, &gate);
  driver().fill(s.stream, a, 4, &one, 4, 0);
  ASSERT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  ASSERT_EQ(driver().stream_wait_event(other, event), GRAFT_OK);
  driver().fill(other, a, 4, &two, 4, 0);
  EXPECT_EQ(driver().event_query(event), GRAFT_BUSY);
  // The wait holds on to the mark, whatever becomes of the event.
  driver().event_record(event, other);
  driver().event_destroy(event);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(driver().stream_query(other), GRAFT_BUSY);
  gate.release();
  EXPECT_EQ(driver().stream_synchronize(other), GRAFT_OK);
  uint32_t value = 0;
  s.download(&value, a, 4);
  EXPECT_EQ(value, 2u);
}

TEST(HostStream, EventsMeasureTime) {
  Session s;
  graft_event start = nullptr, end = nullptr;
  driver().event_create(s.device, 1, &start);
  driver().event_create(s.device, 1, &end);
  int64_t ns = 0;
  EXPECT_EQ(driver().event_elapsed(start, end, &ns), GRAFT_INVALID_ARGUMENT);
  driver().event_record(start, s.stream);
  driver().host_callback(
      s.stream, [](void*) { std::this_thread::sleep_for(milliseconds(20)); }, nullptr);
  driver().event_record(end, s.stream);
  EXPECT_EQ(driver().event_elapsed(start, end, &ns), GRAFT_BUSY);
  EXPECT_EQ(driver().event_synchronize(end), GRAFT_OK);
  ASSERT_EQ(driver().event_elapsed(start, end, &ns), GRAFT_OK);
  EXPECT_GE(ns, 20'000'000);
  EXPECT_LT(ns, 2'000'000'000);
  driver().event_destroy(start);
  driver().event_destroy(end);
}

TEST(HostStream, CallbackRunsOnAnotherThread) {
  Session s;
  std::thread::id id;
  driver().host_callback(
      s.stream, [](void* out) { *static_cast<std::thread::id*>(out) = std::this_thread::get_id(); },
      &id);
  driver().stream_synchronize(s.stream);
  EXPECT_NE(id, std::thread::id());
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST(HostStream, PingPongBetweenStreamsKeepsOrder) {
  Session s;
  graft_stream streams[2] = {s.stream, s.new_stream()};
  graft_address a = s.allocate(4);
  graft_kernel add = s.kernel(
      "typedef union { void* address; unsigned long bits; } argument;\n"
      "void add(const argument* a, unsigned long b, unsigned long e) { ++*(int*)a[0].address; }\n",
      "add");
  graft_argument argument = address(a, 4);
  graft_launch launch = {sizeof launch, 0, {1, 1, 1}, {1, 1, 1}, 1, &argument};
  graft_event event = nullptr;
  driver().event_create(s.device, 0, &event);
  for (int i = 0; i < 2000; ++i) {
    graft_stream now = streams[i % 2], next = streams[1 - i % 2];
    if (i % 100 == 0) {
      driver().host_callback(
          now, [](void*) { std::this_thread::sleep_for(milliseconds(1)); }, nullptr);
    }
    driver().kernel_launch(now, add, &launch);
    driver().event_record(event, now);
    driver().stream_wait_event(next, event);
  }
  driver().event_destroy(event);
  driver().stream_synchronize(streams[1]);
  int value = 0;
  ASSERT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 2000);
}

TEST(HostStream, TakesThreePriorities) {
  Session s;
  for (int32_t priority : {-1, 0, 1}) {
    graft_stream stream = nullptr;
    ASSERT_EQ(driver().stream_create(s.device, priority, &stream), GRAFT_OK);
    driver().host_callback(
        stream, [](void*) {}, nullptr);
    EXPECT_EQ(driver().stream_destroy(stream), GRAFT_OK);
  }
  graft_stream stream = nullptr;
  EXPECT_EQ(driver().stream_create(s.device, 7, &stream), GRAFT_INVALID_ARGUMENT);
}

TEST(HostStream, DestructionWaitsForItsWork) {
  Session s;
  std::atomic<int> done{0};
  graft_stream stream = nullptr;
  driver().stream_create(s.device, 0, &stream);
  for (int i = 0; i < 500; ++i) {
    driver().host_callback(
        stream, [](void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); }, &done);
  }
  driver().stream_destroy(stream);
  EXPECT_EQ(done.load(), 500);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer cannot follow a fork of many threads
TEST(HostStream, ForkedChildIsRefusedAndTouchesNothing) {
  Session s;
  graft_address a = s.allocate(4096);
  driver().host_callback(
      s.stream, [](void*) {}, nullptr);
  driver().stream_synchronize(s.stream);
  pid_t child = fork();
  if (child == 0) {
    uint32_t value = 1;
    bool refused = driver().fill(s.stream, a, 4, &value, 4, 0) == GRAFT_DEVICE_LOST &&
                   last_message().find("spawn") != std::string::npos &&
                   driver().stream_synchronize(s.stream) == GRAFT_DEVICE_LOST &&
                   driver().memory_free(s.device, a) == GRAFT_OK &&
                   driver().stream_destroy(s.stream) == GRAFT_OK;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  uint32_t value = 9;
  EXPECT_EQ(driver().fill(s.stream, a, 4, &value, 4, 0), GRAFT_OK);
}
#endif

TEST(HostStream, SuiteHoldsInEveryMode) {
  std::string tests = "HostStream.*-*Suite*";
  EXPECT_EQ(run_in_environment(tests, "GRAFT_HOST_MODE=async"), 0);
  EXPECT_EQ(run_in_environment(tests, "GRAFT_HOST_MODE=inline"), 0);
  EXPECT_EQ(run_in_environment("HostKernel.*", "GRAFT_HOST_MODE=async"), 0);
}

}  // namespace
}  // namespace graft::host_test
