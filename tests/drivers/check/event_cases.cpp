// tests/drivers/check/event_cases.cpp: marks, queries, waiting and timing.
#include <chrono>
#include <thread>

#include "check/cases.h"

DRIVER_CASE(unrecorded, "event: never recorded means done", "", kOpen) {
  graft_event event = session.event();
  session.expect(session.table.event_query(event), GRAFT_OK, "event_query");
  session.expect(session.table.event_destroy(event), GRAFT_OK, "event_destroy");
}

DRIVER_CASE(unrecorded_wait, "event: waiting for one never recorded returns", "event_synchronize",
            kOpen) {
  session.expect(session.table.event_synchronize(session.event()), GRAFT_OK, "event_synchronize");
}

DRIVER_CASE(busy_then_done, "event: busy before its mark, done after", "host_callback", kOpen) {
  graft_stream stream = session.stream();
  graft_event event = session.event();
  session.delay(stream, 100);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  session.expect(session.table.event_query(event), GRAFT_BUSY, "event_query before the mark");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.expect(session.table.event_query(event), GRAFT_OK, "event_query after the mark");
}

DRIVER_CASE(recorded_again, "event: a new mark replaces the old one", "host_callback", kOpen) {
  graft_stream stream = session.stream();
  graft_event event = session.event();
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.delay(stream, 100);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record again");
  session.expect(session.table.event_query(event), GRAFT_BUSY, "event_query of the new mark");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
}

DRIVER_CASE(event_waits, "event: synchronize waits for the mark, not for what follows",
            "event_synchronize host_callback", kOpen) {
  graft_stream stream = session.stream();
  graft_event event = session.event();
  session.delay(stream, 60);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  session.delay(stream, 400);
  const auto begin = std::chrono::steady_clock::now();
  session.expect(session.table.event_synchronize(event), GRAFT_OK, "event_synchronize");
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  session.expect(session.table.event_query(event), GRAFT_OK, "event_query after synchronize");
  session.require(waited.count() < 0.35, "event_synchronize waited for later commands too");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
}

DRIVER_CASE(event_within, "event: synchronize_within ends in time",
            "event_synchronize_within host_callback", kOpen) {
  graft_stream stream = session.stream();
  graft_event event = session.event();
  const auto within = [&](uint64_t milliseconds) {
    return session.table.event_synchronize_within(event, milliseconds * 1000000);
  };
  session.expect(within(0), GRAFT_OK, "event_synchronize_within of an event never recorded");
  session.delay(stream, 500);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  const auto begin = std::chrono::steady_clock::now();
  session.expect(within(0), GRAFT_BUSY, "event_synchronize_within 0 before the mark");
  session.expect(within(20), GRAFT_BUSY, "event_synchronize_within 20 ms of 500 ms of work");
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  session.require(waited.count() < 0.4, "event_synchronize_within took longer than it was given");
  session.expect(within(20000), GRAFT_OK, "event_synchronize_within 20 s of 500 ms of work");
  session.expect(session.table.event_query(event), GRAFT_OK, "event_query after the mark");
}

DRIVER_CASE(pending_destroy, "event: may be destroyed while pending", "", kOpen) {
  graft_stream stream = session.stream();
  session.delay(stream, 30);
  for (int i = 0; i < 20; ++i) {
    graft_event event = session.event(true);
    session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
    session.expect(session.table.event_destroy(event), GRAFT_OK, "event_destroy");
  }
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
}

DRIVER_CASE(elapsed, "event: elapsed time is in nanoseconds", "event_elapsed host_callback",
            kOpen) {
  graft_stream stream = session.stream();
  graft_event start = session.event(true);
  graft_event end = session.event(true);
  const auto begin = std::chrono::steady_clock::now();
  session.expect(session.table.event_record(start, stream), GRAFT_OK, "event_record");
  session.delay(stream, 50);
  session.expect(session.table.event_record(end, stream), GRAFT_OK, "event_record");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  int64_t nanoseconds = 0;
  session.expect(session.table.event_elapsed(start, end, &nanoseconds), GRAFT_OK, "event_elapsed");
  const double seconds = static_cast<double>(nanoseconds) * 1e-9;
  session.require(seconds >= 0.045 && seconds <= whole.count(),
                  "event_elapsed says " + std::to_string(nanoseconds) +
                      " ns for a pause of 50 ms within " + std::to_string(whole.count()) + " s");
}

DRIVER_CASE(elapsed_pending, "event: elapsed time of a pending event is BUSY",
            "event_elapsed host_callback", kOpen) {
  graft_stream stream = session.stream();
  graft_event start = session.event(true);
  graft_event end = session.event(true);
  session.expect(session.table.event_record(start, stream), GRAFT_OK, "event_record");
  session.delay(stream, 100);
  session.expect(session.table.event_record(end, stream), GRAFT_OK, "event_record");
  int64_t nanoseconds = 0;
  session.expect(session.table.event_elapsed(start, end, &nanoseconds), GRAFT_BUSY,
                 "event_elapsed of a pending event");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
}
