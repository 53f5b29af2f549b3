// drivers/host/driver.cpp: the table of the host driver, a simulated accelerator on the CPU.
#include "graft/driver.h"

#include "device.h"
#include "graft/driver_slot.h"
#include "kernel/kernel.h"
#include "kernel/library.h"
#include "kernel/program.h"
#include "memory/handle.h"
#include "memory/transfer.h"
#include "settings.h"
#include "stream/event.h"
#include "stream/stream.h"

namespace graft::host {
namespace {

constexpr graft_driver_table make_table() {
  graft_driver_table table = {};
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  table.name = "host";
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
  GRAFT_FILL(peer_copy);
  GRAFT_FILL(memory_host_view);
  GRAFT_FILL(host_callback);
  GRAFT_FILL(program_compile);
  GRAFT_FILL(program_load);
  GRAFT_FILL(program_unload);
  GRAFT_FILL(toolchain_fingerprint);
  GRAFT_FILL(kernel_find);
  GRAFT_FILL(kernel_launch);
  GRAFT_FILL(memory_export);
  GRAFT_FILL(memory_import);
  GRAFT_FILL(memory_release);
  GRAFT_FILL(stream_synchronize_within);
  GRAFT_FILL(event_synchronize_within);
#undef GRAFT_FILL
  return table;
}

constexpr graft_driver_table kTable = make_table();

}  // namespace
}  // namespace graft::host

graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table own = graft::host::kTable;
  if (!graft::host::settings().view) own.memory_host_view = nullptr;
  if (!graft::host::settings().share) {
    own.memory_export = nullptr;
    own.memory_import = nullptr;
    own.memory_release = nullptr;
  }
  return graft_driver_fill(table, &own);
}
