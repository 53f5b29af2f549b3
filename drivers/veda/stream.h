// drivers/veda/stream.h: Graft's streams, which take turns on VEDA's.
#ifndef GRAFT_DRIVERS_VEDA_STREAM_H_
#define GRAFT_DRIVERS_VEDA_STREAM_H_

#include "device.h"
#include "graft/driver.h"
#include "queue.h"

// Calls on one stream are serialised by the caller (driver.h, rule 4).
struct graft_stream_s {
  explicit graft_stream_s(graft_device device) : device(device), queue(device->lanes.next()) {}

  const graft_device device;
  graft::veda::Queue queue;
};

namespace graft::veda {

// OK, or why no command can enter the stream.
graft_status check_stream(graft_stream stream);

// Slots of the table, see driver.h.
struct StreamSlots {
  static graft_status stream_create(graft_device device, int32_t priority, graft_stream* out);
  static graft_status stream_destroy(graft_stream stream);
  static graft_status stream_synchronize(graft_stream stream);
  static graft_status stream_synchronize_within(graft_stream stream, uint64_t timeout_ns);
  static graft_status stream_query(graft_stream stream);
  static graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                   size_t capacity);
  static graft_status host_callback(graft_stream stream, void (*function)(void* context),
                                    void* context);
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_STREAM_H_
