// tests/drivers/check/profiler_cases.cpp: the extension graft.profiler.
#include <chrono>
#include <mutex>
#include <vector>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::check::Session;

namespace {

struct Told {
  std::mutex mutex;
  std::vector<graft_trace_event> events;

  static void emit(void* context, const graft_trace_event* events, uint64_t count) {
    auto& told = *static_cast<Told*>(context);
    const std::lock_guard lock(told.mutex);
    for (uint64_t i = 0; i < count; ++i) {
      const auto* at = reinterpret_cast<const char*>(events) + i * events->struct_size;
      told.events.push_back(*reinterpret_cast<const graft_trace_event*>(at));
    }
  }
};

int64_t now_ns() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

DRIVER_CASE(tells_commands, "graft.profiler: tells each command by its tag, in time", "extension",
            kOpen) {
  const auto& table = session.extension<graft_profiler_table>();
  graft_stream stream = session.stream();
  const graft_address memory = session.allocate(4096);
  const uint32_t zero = 0;
  Told told;
  session.expect(table.trace_start(session.device, &Told::emit, &told), GRAFT_OK, "trace_start");
  session.expect(table.trace_start(session.device, &Told::emit, &told), GRAFT_BUSY,
                 "trace_start while the device is traced");
  const int64_t before = now_ns();
  for (uint32_t tag = 41; tag < 44; ++tag) {
    session.expect(session.table.fill(stream, memory, 4096, &zero, 4, tag), GRAFT_OK, "fill");
  }
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  const int64_t after = now_ns();
  session.expect(table.trace_stop(session.device), GRAFT_OK, "trace_stop");
  session.expect(session.table.fill(stream, memory, 4096, &zero, 4, 44), GRAFT_OK, "fill");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  const std::lock_guard lock(told.mutex);
  session.require(told.events.size() >= 3, "3 fills made only " +
                                               std::to_string(told.events.size()) +
                                               " events by the time the stream was synchronised");
  constexpr int64_t kSlack = 1'000'000;  // device clocks are matched, not equal
  for (const graft_trace_event& event : told.events) {
    session.require(event.tag == 0 || (event.tag >= 41 && event.tag < 44),
                    "an event has the tag " + std::to_string(event.tag));
    session.require(event.stream == stream, "an event names another stream");
    session.require(event.start_ns <= event.end_ns, "an event ends before it starts");
    session.require(event.start_ns >= before - kSlack && event.end_ns <= after + kSlack,
                    "an event's time is not nanoseconds since the Unix epoch");
  }
}
