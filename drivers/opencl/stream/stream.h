// drivers/opencl/stream/stream.h: streams, which are in-order command queues.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_STREAM_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_STREAM_H_

#include <memory>

#include "callback_thread.h"
#include "graft/driver.h"
#include "platform/device.h"
#include "queue.h"

// Calls on one stream are serialised by the caller (driver.h, rule 4).
struct graft_stream_s {
  graft_device device;
  std::shared_ptr<graft::opencl::Queue> queue;
  graft::opencl::CallbackThread callbacks;
};

namespace graft::opencl {

// OK, or why no command can enter the stream.
graft_status check_stream(graft_stream stream);

// Slots of the table, see driver.h.
struct StreamSlots {
  static graft_status stream_create(graft_device device, int32_t priority, graft_stream* out);
  // The handle is a cl_command_queue in the context of the device's other queues.
  static graft_status stream_wrap(graft_device device, uint64_t native_handle, graft_stream* out);
  static graft_status stream_destroy(graft_stream stream);
  static graft_status stream_synchronize(graft_stream stream);
  static graft_status stream_synchronize_within(graft_stream stream, uint64_t timeout_ns);
  static graft_status stream_query(graft_stream stream);
  static graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                   size_t capacity);
  // The cl_command_queue.
  static graft_status stream_native_handle(graft_stream stream, uint64_t* out_handle);
  static graft_status host_callback(graft_stream stream, void (*function)(void* context),
                                    void* context);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_STREAM_H_
