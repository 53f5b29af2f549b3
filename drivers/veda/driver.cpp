// drivers/veda/driver.cpp: the table of the VEDA driver.
#include "graft/driver.h"

#include "device.h"
#include "event.h"
#include "graft/driver_slot.h"
#include "memory.h"
#include "program/kernel.h"
#include "program/program.h"
#include "stream.h"
#include "transfer.h"

namespace graft::veda {
namespace {

// What is not filled in here, VEDA cannot do: README.md says why.
constexpr graft_driver_table make_table() {
  graft_driver_table table = {};
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  table.name = "veda";
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
  GRAFT_FILL(stream_query);
  GRAFT_FILL(stream_wait_event);
  GRAFT_FILL(stream_error);
  GRAFT_FILL(event_synchronize);
  GRAFT_FILL(event_elapsed);
  GRAFT_FILL(memory_info);
  GRAFT_FILL(peer_copy);
  GRAFT_FILL(host_callback);
  GRAFT_FILL(program_compile);
  GRAFT_FILL(program_load);
  GRAFT_FILL(program_unload);
  GRAFT_FILL(toolchain_fingerprint);
  GRAFT_FILL(kernel_find);
  GRAFT_FILL(kernel_launch);
  GRAFT_FILL(stream_synchronize_within);
  GRAFT_FILL(event_synchronize_within);
  GRAFT_FILL(device_sensor);
#undef GRAFT_FILL
  return table;
}

constexpr graft_driver_table kTable = make_table();

}  // namespace
}  // namespace graft::veda

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &graft::veda::kTable);
}
