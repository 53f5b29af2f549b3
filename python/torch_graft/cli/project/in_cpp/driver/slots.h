// driver/slots.h: the slots that every driver of this project has, each defined in the file of its
// noun. Contracts: graft/driver.h.
//
// A slot that is added here is in the table at once. An optional slot that the real chip cannot do
// is deleted here and in its file.
#ifndef ACME_DRIVER_SLOTS_H_
#define ACME_DRIVER_SLOTS_H_

#include "graft/driver.h"

namespace acme_driver {

// The language of program_compile, "" if the chip takes no kernels of Graft's.
extern const char* const kDialect;

// device.cpp
struct DeviceSlots {
  static graft_status device_count(uint32_t* out_count);
  static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties);
  static graft_status device_open(uint32_t ordinal, graft_device* out_device);
  static graft_status device_close(graft_device device);
};

// memory.cpp
struct MemorySlots {
  static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out);
  static graft_status memory_free(graft_device device, graft_address address);
  static graft_status memory_info(graft_device device, uint64_t* out_free, uint64_t* out_total);
  static graft_status host_allocate(graft_device device, uint64_t bytes, void** out_pointer);
  static graft_status host_free(graft_device device, void* pointer);
};

// transfer.cpp
struct TransferSlots {
  static graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                           uint32_t kind, uint32_t tag);
  static graft_status fill(graft_stream stream, graft_address to, uint64_t bytes,
                           const void* pattern, uint32_t pattern_bytes, uint32_t tag);
};

// stream.cpp
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

// event.cpp
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

struct CommonSlots : DeviceSlots, MemorySlots, TransferSlots, StreamSlots, EventSlots {};

}  // namespace acme_driver

#endif  // ACME_DRIVER_SLOTS_H_
