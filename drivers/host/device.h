// drivers/host/device.h: one simulated device.
#ifndef GRAFT_DRIVERS_HOST_DEVICE_H_
#define GRAFT_DRIVERS_HOST_DEVICE_H_

#include <atomic>
#include <cstdint>

#include "graft/driver.h"
#include "stream/trace.h"

namespace graft::host {
class Arena;
}

struct graft_device_s {
  uint32_t ordinal;
  graft::host::Arena* arena;
  std::atomic<bool> lost{false};
  graft::host::Trace trace{};
};

namespace graft::host {

// OK, or why no call on the device can work: it is lost, or this is a forked child.
graft_status check_device(graft_device device);

// Slots of the table, see driver.h.
struct DeviceSlots {
  static graft_status device_count(uint32_t* out_count);
  static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties);
  static graft_status device_identity(uint32_t ordinal, graft_device_identity* identity);
  static graft_status device_open(uint32_t ordinal, graft_device* out_device);
  static graft_status device_close(graft_device device);
  static graft_status device_reset(uint32_t ordinal);
  static graft_status device_link(uint32_t from, uint32_t to, graft_device_link* link);
  static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out);
  static graft_status memory_free(graft_device device, graft_address address);
  static graft_status memory_info(graft_device device, uint64_t* out_free, uint64_t* out_total);
  static graft_status memory_host_view(graft_device device, graft_address address, uint64_t bytes,
                                       void** out_pointer);
  static graft_status host_allocate(graft_device device, uint64_t bytes, void** out_pointer);
  static graft_status host_free(graft_device device, void* pointer);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_DEVICE_H_
