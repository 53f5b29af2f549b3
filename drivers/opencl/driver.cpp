// drivers/opencl/driver.cpp: the table of the OpenCL driver.
#include "graft/driver.h"

#include <string>
#include <string_view>

#include "graft/driver_slot.h"
#include "kernel/kernel.h"
#include "kernel/program.h"
#include "memory/transfer.h"
#include "platform/device.h"
#include "stream/event.h"
#include "stream/graph.h"
#include "stream/stream.h"
#include "stream/trace.h"

namespace graft::opencl {
namespace {

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (name == nullptr || out_table == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "extension: no name or no out pointer given");
  }
  const std::string_view wanted = version == 1 ? name : "";
  const void* table = wanted == "graft.profiler"   ? static_cast<const void*>(&profiler_table())
                      : wanted == "graft.programs" ? static_cast<const void*>(&programs_table())
                      : wanted == "graft.graphs"   ? &graphs_table()
                                                   : nullptr;
  *out_table = table;
  if (table != nullptr) return GRAFT_OK;
  return fail(GRAFT_NOT_FOUND, "the OpenCL driver has no extension " + std::string(name) +
                                   ", version " + std::to_string(version));
}

constexpr graft_driver_table make_table() {
  graft_driver_table table = {};
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  table.name = "opencl";
#define GRAFT_FILL(name) table.name = &Guarded<&name>::call
  GRAFT_FILL(device_count);
  GRAFT_FILL(device_properties);
  GRAFT_FILL(device_open);
  GRAFT_FILL(device_close);
  GRAFT_FILL(memory_allocate);
  GRAFT_FILL(memory_free);
  GRAFT_FILL(stream_create);
  GRAFT_FILL(stream_destroy);
  GRAFT_FILL(stream_synchronize);
  GRAFT_FILL(copy);
  GRAFT_FILL(fill);
  GRAFT_FILL(event_create);
  GRAFT_FILL(event_destroy);
  GRAFT_FILL(event_record);
  GRAFT_FILL(event_query);
  GRAFT_FILL(last_message);
  GRAFT_FILL(extension);
  GRAFT_FILL(stream_query);
  GRAFT_FILL(stream_wait_event);
  GRAFT_FILL(stream_error);
  GRAFT_FILL(stream_native_handle);
  GRAFT_FILL(event_synchronize);
  GRAFT_FILL(event_elapsed);
  GRAFT_FILL(memory_info);
  GRAFT_FILL(host_allocate);
  GRAFT_FILL(host_free);
  GRAFT_FILL(memory_host_view);
  GRAFT_FILL(host_callback);
  GRAFT_FILL(program_compile);
  GRAFT_FILL(program_load);
  GRAFT_FILL(program_unload);
  GRAFT_FILL(toolchain_fingerprint);
  GRAFT_FILL(kernel_find);
  GRAFT_FILL(kernel_launch);
  GRAFT_FILL(stream_synchronize_within);
  GRAFT_FILL(event_synchronize_within);
#undef GRAFT_FILL
  return table;
}

constexpr graft_driver_table kTable = make_table();

}  // namespace
}  // namespace graft::opencl

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &graft::opencl::kTable);
}
