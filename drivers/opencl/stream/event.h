// drivers/opencl/stream/event.h: points in a stream that others wait for.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_EVENT_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_EVENT_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "graft/driver.h"
#include "queue.h"

struct graft_event_s {
  graft_device device;
  bool timed;
  std::mutex mutex;
  std::shared_ptr<graft::opencl::Mark> mark;  // NULL: never recorded; guarded by mutex
};

namespace graft::opencl {

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

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_EVENT_H_
