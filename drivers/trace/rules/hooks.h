// drivers/trace/rules/hooks.h: the rules of each slot: Before looks at the caller, After at the
// driver.
//
// A hook has the slot's name and parameters behind the call's; After also has the status. A hook of
// Before may replace an argument that it takes by reference. A slot without a hook has only the
// rules of every slot (rules/checks.h).
#ifndef GRAFT_DRIVERS_TRACE_RULES_HOOKS_H_
#define GRAFT_DRIVERS_TRACE_RULES_HOOKS_H_

#include "call/call.h"

namespace graft::trace {

template <class Table>
struct Before {};
template <class Table>
struct After {};

struct PropertyBefore {
  static void device_properties(TraceCall&, uint32_t ordinal, graft_device_properties*& properties);
  static void device_identity(TraceCall&, uint32_t ordinal, graft_device_identity*& identity);
  static void device_link(TraceCall&, uint32_t from, uint32_t to, graft_device_link*& link);
};
struct MemoryBefore {
  static void device_open(TraceCall&, uint32_t ordinal, graft_device* out_device);
  static void device_close(TraceCall&, graft_device device);
  static void device_reset(TraceCall&, uint32_t ordinal);
  static void memory_allocate(TraceCall&, graft_device device, uint64_t bytes, graft_address* out);
  static void memory_free(TraceCall&, graft_device device, graft_address address);
  static void memory_info(TraceCall&, graft_device device, uint64_t* out_free, uint64_t* out_total);
  static void host_free(TraceCall&, graft_device device, void* pointer);
  static void memory_host_view(TraceCall&, graft_device device, graft_address address,
                               uint64_t bytes, void** out_pointer);
  static void memory_export(TraceCall&, graft_device device, graft_address address,
                            uint8_t* out_handle, graft_address* out_begin);
  static void memory_release(TraceCall&, graft_device device, graft_address address);
};
struct MappingBefore {
  static void memory_reserve(TraceCall&, graft_device device, uint64_t bytes, graft_address* out);
  static void memory_map(TraceCall&, graft_device device, graft_address address, uint64_t bytes);
  static void memory_unmap(TraceCall&, graft_device device, graft_address address, uint64_t bytes);
  static void memory_unreserve(TraceCall&, graft_device device, graft_address address);
};
struct StreamBefore {
  static void stream_create(TraceCall&, graft_device device, int32_t priority, graft_stream* out);
  static void stream_destroy(TraceCall&, graft_stream stream);
  static void stream_synchronize(TraceCall&, graft_stream stream);
  static void stream_synchronize_within(TraceCall&, graft_stream stream, uint64_t timeout_ns);
  static void stream_query(TraceCall&, graft_stream stream);
  static void host_callback(TraceCall&, graft_stream stream, void (*&function)(void* context),
                            void*& context);
};
struct CopyBefore {
  static void copy(TraceCall&, graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                   uint32_t kind, uint32_t tag);
  static void copy_strided(TraceCall&, graft_stream stream, const graft_strided_copy*& copy,
                           uint32_t tag);
  static void fill(TraceCall&, graft_stream stream, graft_address to, uint64_t bytes,
                   const void*& pattern, uint32_t pattern_bytes, uint32_t tag);
  static void peer_copy(TraceCall&, graft_stream stream, graft_address to, graft_device from_device,
                        graft_address from, uint64_t bytes, uint32_t tag);
};
struct EventBefore {
  static void event_destroy(TraceCall&, graft_event event);
  static void event_record(TraceCall&, graft_event event, graft_stream stream);
  static void event_query(TraceCall&, graft_event event);
  static void event_synchronize(TraceCall&, graft_event event);
  static void event_synchronize_within(TraceCall&, graft_event event, uint64_t timeout_ns);
  static void event_elapsed(TraceCall&, graft_event start, graft_event end, int64_t* out_ns);
  static void stream_wait_event(TraceCall&, graft_stream stream, graft_event event);
};
struct KernelBefore {
  static void program_load(TraceCall&, graft_device device, const void*& blob, size_t bytes,
                           graft_program* out_program);
  static void program_unload(TraceCall&, graft_program program);
  static void kernel_find(TraceCall&, graft_device device, graft_program program, const char* name,
                          graft_kernel* out);
  static void kernel_launch(TraceCall&, graft_stream stream, graft_kernel kernel,
                            const graft_launch*& launch);
};
template <>
struct Before<graft_driver_table> : PropertyBefore,
                                    MemoryBefore,
                                    MappingBefore,
                                    StreamBefore,
                                    CopyBefore,
                                    EventBefore,
                                    KernelBefore {};

struct PropertyAfter {
  static void device_properties(TraceCall&, graft_status, uint32_t ordinal,
                                graft_device_properties* properties);
  static void device_identity(TraceCall&, graft_status, uint32_t ordinal,
                              graft_device_identity* identity);
  static void device_link(TraceCall&, graft_status, uint32_t from, uint32_t to,
                          graft_device_link* link);
  static void device_sensor(TraceCall&, graft_status, graft_device device, uint32_t sensor,
                            int64_t* out_value);
};
struct MemoryAfter {
  static void device_open(TraceCall&, graft_status, uint32_t ordinal, graft_device* out_device);
  static void device_close(TraceCall&, graft_status, graft_device device);
  static void memory_allocate(TraceCall&, graft_status, graft_device device, uint64_t bytes,
                              graft_address* out);
  static void memory_info(TraceCall&, graft_status, graft_device device, uint64_t* out_free,
                          uint64_t* out_total);
  static void host_allocate(TraceCall&, graft_status, graft_device device, uint64_t bytes,
                            void** out_pointer);
  static void memory_host_view(TraceCall&, graft_status, graft_device device, graft_address address,
                               uint64_t bytes, void** out_pointer);
  static void memory_import(TraceCall&, graft_status, graft_device device, const uint8_t* handle,
                            graft_address* out_address);
};
struct MappingAfter {
  static void memory_reserve(TraceCall&, graft_status, graft_device device, uint64_t bytes,
                             graft_address* out);
  static void memory_map(TraceCall&, graft_status, graft_device device, graft_address address,
                         uint64_t bytes);
};
struct StreamAfter {
  static void stream_create(TraceCall&, graft_status, graft_device device, int32_t priority,
                            graft_stream* out);
  static void stream_wrap(TraceCall&, graft_status, graft_device device, uint64_t native_handle,
                          graft_stream* out);
  static void stream_destroy(TraceCall&, graft_status, graft_stream stream);
  static void stream_synchronize(TraceCall&, graft_status, graft_stream stream);
  static void stream_synchronize_within(TraceCall&, graft_status, graft_stream stream,
                                        uint64_t timeout_ns);
  static void stream_query(TraceCall&, graft_status, graft_stream stream);
  static void stream_error(TraceCall&, graft_status, graft_stream stream, uint32_t* out_tag,
                           char* out_text, size_t capacity);
  static void host_callback(TraceCall&, graft_status, graft_stream stream,
                            void (*function)(void* context), void* context);
  static void stream_native_handle(TraceCall&, graft_status, graft_stream stream,
                                   uint64_t* out_handle);
};
struct CopyAfter {
  static void copy(TraceCall&, graft_status, graft_stream stream, uint64_t to, uint64_t from,
                   uint64_t bytes, uint32_t kind, uint32_t tag);
  static void copy_strided(TraceCall&, graft_status, graft_stream stream,
                           const graft_strided_copy* copy, uint32_t tag);
  static void fill(TraceCall&, graft_status, graft_stream stream, graft_address to, uint64_t bytes,
                   const void* pattern, uint32_t pattern_bytes, uint32_t tag);
};
struct EventAfter {
  static void event_create(TraceCall&, graft_status, graft_device device, uint32_t timed,
                           graft_event* out);
  static void event_record(TraceCall&, graft_status, graft_event event, graft_stream stream);
  static void event_query(TraceCall&, graft_status, graft_event event);
  static void event_synchronize(TraceCall&, graft_status, graft_event event);
  static void event_synchronize_within(TraceCall&, graft_status, graft_event event,
                                       uint64_t timeout_ns);
  static void event_elapsed(TraceCall&, graft_status, graft_event start, graft_event end,
                            int64_t* out_ns);
  static void stream_wait_event(TraceCall&, graft_status, graft_stream stream, graft_event event);
};
struct KernelAfter {
  static void program_load(TraceCall&, graft_status, graft_device device, const void* blob,
                           size_t bytes, graft_program* out_program);
  static void kernel_find(TraceCall&, graft_status, graft_device device, graft_program program,
                          const char* name, graft_kernel* out);
  static void kernel_launch(TraceCall&, graft_status, graft_stream stream, graft_kernel kernel,
                            const graft_launch* launch);
};
template <>
struct After<graft_driver_table>
    : PropertyAfter, MemoryAfter, MappingAfter, StreamAfter, CopyAfter, EventAfter, KernelAfter {};

// Notes a program whose text or blob has the hash content.
void add_program(TraceCall& call, graft_device device, graft_program program, uint64_t content);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_RULES_HOOKS_H_
