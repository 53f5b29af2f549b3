// tests/drivers/host/simulation_test.cpp: simulated time: clocks of streams, links, mirrored ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ranks.h"

namespace graft::host_test {
namespace {

constexpr uint64_t kBytes = 1 << 20;
// With memory=1G and launch=1us.
constexpr int64_t kFillNs = 1'000 + int64_t{kBytes};

// A process for each way of running commands.
bool reran_with(const std::string& settings) {
  const std::string simulate = "GRAFT_HOST_SIMULATE=" + settings;
  return reran(
      {simulate, simulate + " GRAFT_HOST_MODE=async", simulate + " GRAFT_HOST_MODE=inline"});
}

// A point in a stream's time.
class Point {
 public:
  Point(graft_device device, graft_stream stream) {
    EXPECT_EQ(driver().event_create(device, 1, &event_), GRAFT_OK);
    EXPECT_EQ(driver().event_record(event_, stream), GRAFT_OK);
  }
  ~Point() { driver().event_destroy(event_); }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // Nanoseconds since an earlier point.
  int64_t since(const Point& earlier) const {
    int64_t ns = -1;
    EXPECT_EQ(driver().event_synchronize(event_), GRAFT_OK) << last_message();
    EXPECT_EQ(driver().event_elapsed(earlier.event_, event_, &ns), GRAFT_OK) << last_message();
    return ns;
  }
  void hold(graft_stream stream) const {
    EXPECT_EQ(driver().stream_wait_event(stream, event_), GRAFT_OK);
  }

 private:
  graft_event event_ = nullptr;
};

void fill(graft_stream stream, graft_address to, char value = 0, uint64_t bytes = kBytes) {
  EXPECT_EQ(driver().fill(stream, to, bytes, &value, 1, 0), GRAFT_OK) << last_message();
}

// What a command of a stream takes.
template <class Command>
int64_t time_of(const Session& session, const Command& command) {
  const Point start(session.device, session.stream);
  EXPECT_EQ(command(), GRAFT_OK) << last_message();
  return Point(session.device, session.stream).since(start);
}

TEST(HostSimulation, CommandsTakeTheirModelledTime) {
  if (reran_with("memory=1G,host=500M,launch=1us")) return;
  Session s;
  const graft_address a = s.allocate(kBytes), b = s.allocate(kBytes);
  std::vector<char> host(kBytes);
  const auto there = reinterpret_cast<uint64_t>(host.data());
  const auto copy = [&](uint64_t to, uint64_t from, uint32_t kind) {
    return time_of(s, [&] { return driver().copy(s.stream, to, from, kBytes, kind, 0); });
  };
  const char zero = 0;
  constexpr int64_t kTwiceNs = 1'000 + 2 * int64_t{kBytes};
  constexpr int64_t kLaunchNs = 1'000 + int64_t{kBytes} + 4096;
  EXPECT_EQ(time_of(s, [&] { return driver().fill(s.stream, a, kBytes, &zero, 1, 0); }), kFillNs);
  EXPECT_EQ(copy(a, b, GRAFT_DEVICE_TO_DEVICE), kTwiceNs);
  EXPECT_EQ(copy(a, there, GRAFT_HOST_TO_DEVICE), kTwiceNs);
  EXPECT_EQ(copy(there, a, GRAFT_DEVICE_TO_HOST), kTwiceNs);
  const graft_kernel kernel = s.kernel(
      "#include <stdint.h>\n"
      "void one(const void* arguments, uint64_t begin, uint64_t end) {\n"
      "  (void)arguments, (void)begin, (void)end;\n"
      "}\n",
      "one");
  for (const uint64_t grid : {1, 100}) {
    EXPECT_EQ(time_of(s,
                      [&] {
                        return s.launch(kernel, grid, {address(a, kBytes), address(b, 4096)});
                      }),
              kLaunchNs);
  }
}

TEST(HostSimulation, StreamsOverlap) {
  if (reran_with("memory=1G,launch=1us")) return;
  Session s;
  const graft_stream other = s.new_stream();
  const graft_address a = s.allocate(kBytes), b = s.allocate(kBytes);
  const Point start(s.device, s.stream);
  fill(s.stream, a);
  fill(s.stream, a);
  fill(other, b);
  const Point done(s.device, other);
  EXPECT_EQ(done.since(start), kFillNs);
  done.hold(s.stream);
  EXPECT_EQ(Point(s.device, s.stream).since(start), 2 * kFillNs);
}

TEST(HostSimulation, AStreamThatWaitsIsHeldUp) {
  if (reran_with("memory=1G,launch=1us")) return;
  Session s;
  const graft_stream other = s.new_stream();
  const graft_address a = s.allocate(kBytes), b = s.allocate(kBytes);
  const Point start(s.device, s.stream);
  fill(other, b);
  fill(other, b);
  Point(s.device, other).hold(s.stream);
  fill(s.stream, a);
  EXPECT_EQ(Point(s.device, s.stream).since(start), 3 * kFillNs);
}

TEST(HostSimulation, TheHostGivesNoCommandBeforeWhatItWaitedFor) {
  if (reran_with("memory=1G,launch=1us")) return;
  Session s;
  const graft_stream other = s.new_stream();
  const graft_address a = s.allocate(kBytes);
  const Point start(s.device, other);
  fill(s.stream, a);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  ASSERT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_OK);
  fill(other, a);
  EXPECT_EQ(Point(s.device, other).since(start), 2 * kFillNs);
}

TEST(HostSimulation, GivingCommandsTakesTheHostItsTime) {
  if (reran_with("memory=1G,launch=0,submit=2ms")) return;
  Session s;
  const graft_address a = s.allocate(kBytes);
  const Point start(s.device, s.stream);
  for (int i = 0; i < 3; ++i) fill(s.stream, a);
  // The device is faster than the host.
  EXPECT_EQ(Point(s.device, s.stream).since(start), 3 * 2'000'000 + int64_t{kBytes});
}

TEST(HostSimulation, TracesTellSimulatedTimes) {
  if (reran_with("memory=1G,launch=1us")) return;
  Session s;
  const graft_address a = s.allocate(kBytes);
  const void* found = nullptr;
  ASSERT_EQ(driver().extension("graft.profiler", 1, &found), GRAFT_OK);
  const auto& profiler = *static_cast<const graft_profiler_table*>(found);
  std::vector<graft_trace_event> events;
  const graft_emit_trace emit = [](void* context, const graft_trace_event* event, uint64_t) {
    static_cast<std::vector<graft_trace_event>*>(context)->push_back(*event);
  };
  ASSERT_EQ(profiler.trace_start(s.device, emit, &events), GRAFT_OK);
  fill(s.stream, a);
  fill(s.stream, a);
  ASSERT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  ASSERT_EQ(profiler.trace_stop(s.device), GRAFT_OK);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].end_ns - events[0].start_ns, kFillNs);
  EXPECT_EQ(events[1].start_ns, events[0].end_ns);
}

TEST(HostSimulation, ASettingThatIsNotUnderstoodIsNamed) {
  for (const char* wrong : {"bandwith=25G", "latency=5m", "ranks=1e2", "compute=no", "memory=0"}) {
    SCOPED_TRACE(wrong);
    if (!is_rerun()) {
      reran({std::string("GRAFT_HOST_SIMULATE=node=8,") + wrong});
      continue;
    }
    graft_device device = nullptr;
    EXPECT_EQ(driver().device_open(0, &device), GRAFT_INVALID_ARGUMENT);
    const std::string said = std::getenv("GRAFT_HOST_SIMULATE");
    EXPECT_TRUE(says("'" + said.substr(said.find(',') + 1) + "'"));
    return;
  }
}

TEST(HostSimulation, LargeCommandsAreSkippedAndTakeTheirTime) {
  if (reran_with("memory=1G,launch=1us,compute=skip,ranks=4")) return;
  Session s;
  const graft_address large = s.allocate(kBytes), small = s.allocate(4);
  const Point start(s.device, s.stream);
  fill(s.stream, large, 7);
  EXPECT_EQ(Point(s.device, s.stream).since(start), kFillNs);
  fill(s.stream, small, 7, 4);
  char bytes[4] = {1, 1, 1, 1};
  ASSERT_EQ(s.download(bytes, small, 4), GRAFT_OK);
  EXPECT_EQ(bytes[3], 7);
  ASSERT_EQ(s.download(bytes, large, 4), GRAFT_OK);
  EXPECT_EQ(bytes[3], 0);
}

TEST(HostSimulation, RanksMeetWhenTheLastOneComes) {
  if (reran_with("memory=1G,launch=1us,bandwidth=1G,latency=3us")) return;
  in_threads(2, [](Rank& rank) {
    const uint64_t count = kBytes / 4;
    const graft_address a = rank.session.allocate(kBytes);
    const Point start(rank.session.device, rank.session.stream);
    for (uint32_t i = 0; i < 3 * rank.rank; ++i) fill(rank.session.stream, a);
    ASSERT_EQ(rank.all_reduce(a, count), GRAFT_OK) << last_message();
    const Point end(rank.session.device, rank.session.stream);
    ASSERT_EQ(rank.synchronize(), GRAFT_OK) << last_message();
    EXPECT_EQ(end.since(start), 3 * kFillNs + int64_t{kBytes} + 2 * 3'000);
  });
}

}  // namespace
}  // namespace graft::host_test
