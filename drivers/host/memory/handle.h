// drivers/host/memory/handle.h: device memory that another process maps.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_HANDLE_H_
#define GRAFT_DRIVERS_HOST_MEMORY_HANDLE_H_

#include <cstdint>

#include "graft/driver.h"

namespace graft::host {

// Slots of the table, see driver.h. A handle is good for processes of the same user that see the
// exporter's /proc, also for the exporter itself.
struct HandleSlots {
  static graft_status memory_export(graft_device device, graft_address address, uint8_t* out_handle,
                                    graft_address* out_begin);
  static graft_status memory_import(graft_device device, const uint8_t* handle,
                                    graft_address* out_address);
  static graft_status memory_release(graft_device device, graft_address address);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_HANDLE_H_
