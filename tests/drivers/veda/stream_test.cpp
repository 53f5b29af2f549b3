// tests/drivers/veda/stream_test.cpp: order within and between streams, events, functions of the
// host, VEDA's own context of the calling thread.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::veda_test {
namespace {

using host_test::reran;

std::vector<std::string> both_modes(const std::string& settings = "") {
  return {emulated(settings), emulated(settings, "GRAFT_VE_MODE=scalar")};
}

// Waits until released, with a limit so that a wrong driver fails and does not hang.
struct Gate {
  std::atomic<bool> open{false}, was_open{false};
  static void wait(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    for (int i = 0; i < 5000 && !self->open; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    self->was_open = self->open.load();
  }
};

TEST(VedaStream, AFunctionOfTheHostStopsItsStreamAlone) {
  if (reran(both_modes())) return;
  Session s;
  Gate gate;
  const graft_address x = s.put({1}), y = s.put({2});
  graft_stream other = s.new_stream();
  const int five = 5;
  EXPECT_EQ(driver().host_callback(s.stream, Gate::wait, &gate), GRAFT_OK);
  EXPECT_EQ(s.upload(x, &five, 4), GRAFT_OK);
  EXPECT_EQ(driver().copy(other, y, reinterpret_cast<uint64_t>(&five), 4, GRAFT_HOST_TO_DEVICE, 0),
            GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(other), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  gate.open = true;
  EXPECT_EQ(s.get(x, 1), std::vector<int>{5});
  EXPECT_TRUE(gate.was_open);
}

// An event before a function of the host passes though the stream has more to do.
TEST(VedaStream, AnEventPassesBeforeWhatFollowsIt) {
  if (reran(both_modes())) return;
  Session s;
  Gate gate;
  const int five = 5;
  const graft_address x = s.put({1});
  graft_event event = s.new_event();
  EXPECT_EQ(s.upload(x, &five, 4), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().host_callback(s.stream, Gate::wait, &gate), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize(event), GRAFT_OK) << last_message();
  gate.open = true;
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  EXPECT_TRUE(gate.was_open);
}

TEST(VedaStream, EventsHaveTimesInOrder) {
  if (reran(both_modes("LATENCY=3000"))) return;
  Session s;
  const int five = 5;
  const graft_address x = s.put({1});
  graft_event begin = s.new_event(true), end = s.new_event(true);
  EXPECT_EQ(driver().event_record(begin, s.stream), GRAFT_OK);
  EXPECT_EQ(s.upload(x, &five, 4), GRAFT_OK);
  EXPECT_EQ(driver().event_record(end, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().event_synchronize(end), GRAFT_OK);
  int64_t ns = 0;
  EXPECT_EQ(driver().event_elapsed(begin, end, &ns), GRAFT_OK);
  EXPECT_GE(ns, 2'000'000);
}

TEST(VedaStream, StreamsOfManyThreadsKeepTheirOrder) {
  if (reran(both_modes("CORES=2"))) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> threads;
  std::vector<graft_address> places;
  std::vector<graft_stream> streams;
  for (int i = 0; i < kThreads; ++i) {
    places.push_back(s.put({0, 0}));
    streams.push_back(s.new_stream());
  }
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const graft_argument arguments[] = {address(places[t], 8), scalar(1)};
      const graft_launch launch = {sizeof launch, 0, {2, 1, 1}, {1, 1, 1}, 2, arguments};
      for (int i = 0; i < kRounds; ++i) {
        graft_address more = 0;
        failures += driver().kernel_launch(streams[t], add, &launch) != GRAFT_OK;
        failures += driver().memory_allocate(s.device, 64, &more) != GRAFT_OK;
        failures += driver().memory_free(s.device, more) != GRAFT_OK;
      }
      failures += driver().stream_synchronize(streams[t]) != GRAFT_OK;
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(failures, 0) << last_message();
  for (graft_address each : places) EXPECT_EQ(s.get(each, 2), (std::vector<int>{kRounds, kRounds}));
}

TEST(VedaStream, PrioritiesAreRefused) {
  if (reran({emulated()})) return;
  Session s;
  graft_stream stream = nullptr;
  EXPECT_EQ(driver().stream_create(s.device, -1, &stream), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(stream, nullptr);
}

TEST(VedaStream, AClosedDeviceOpensAgain) {
  if (reran(both_modes())) return;
  for (int i = 0; i < 3; ++i) {
    Session s;
    EXPECT_EQ(s.get(s.put({i}), 1), std::vector<int>{i});
  }
}

}  // namespace
}  // namespace graft::veda_test
