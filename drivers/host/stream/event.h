// drivers/host/stream/event.h: points in a stream that others wait for.
#ifndef GRAFT_DRIVERS_HOST_STREAM_EVENT_H_
#define GRAFT_DRIVERS_HOST_STREAM_EVENT_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "graft/driver.h"
#include "graft/driver_failure.h"
#include "sleep_word.h"

namespace graft::host {

// One recorded point. Waiters keep it alive after its event was recorded again or destroyed.
struct Mark {
  SleepWord passed;                 // 0 before, 1 after
  int64_t time_ns = 0;              // of a steady clock or simulated; written before passed
  LateError error;                  // of the stream when the mark was passed; written before passed
  std::shared_ptr<Failure> source;  // the stream's

  bool is_passed() const { return passed.load(std::memory_order_acquire) != 0; }
  // time_ns: of the simulation, 0 without.
  void pass(int64_t simulated_ns);
  // False: not passed when the time is over.
  bool wait(uint64_t timeout_ns = SleepLimit::kForever) {
    SleepLimit limit(timeout_ns);
    return passed.await_change(0, limit);
  }
};

// Slots of the table, see driver.h.
struct EventSlots {
  static graft_status event_create(graft_device device, uint32_t timed, graft_event* out);
  static graft_status event_destroy(graft_event event);
  static graft_status event_record(graft_event event, graft_stream stream);
  static graft_status event_query(graft_event event);
  static graft_status event_synchronize(graft_event event);
  static graft_status event_synchronize_within(graft_event event, uint64_t timeout_ns);
  static graft_status event_elapsed(graft_event start, graft_event end, int64_t* out_ns);
  static graft_status stream_wait_event(graft_stream stream, graft_event event);
};

}  // namespace graft::host

struct graft_event_s {
  graft_device device;
  std::mutex mutex;
  std::shared_ptr<graft::host::Mark> mark;  // NULL: never recorded; guarded by mutex
};

#endif  // GRAFT_DRIVERS_HOST_STREAM_EVENT_H_
