// drivers/veda/device.h: one opened Vector Engine.
#ifndef GRAFT_DRIVERS_VEDA_DEVICE_H_
#define GRAFT_DRIVERS_VEDA_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "catalog.h"
#include "graft/driver.h"
#include "lane.h"
#include "memory.h"

struct graft_device_s {
  explicit graft_device_s(const graft::veda::Listed& listed) : listed(listed) {}

  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  // Loses the device for good; the first reason stays. Thread-safe, as the next.
  void lose(const std::string& reason);
  std::string reason() const;

  const graft::veda::Listed& listed;
  VEDAcontext context = nullptr;
  bool is_borrowed = false;  // others of the process made the context
  graft::veda::Lanes lanes;
  VEDAdeviceptr scratch = nullptr;  // 8 bytes, for asking whether the device answers
  graft::veda::Allocations memory;

 private:
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

namespace graft::veda {

// OK, or why no call on the device can work: it is lost, or this is a forked child.
graft_status check_device(graft_device device);

// Slots of the table, see driver.h.
struct DeviceSlots {
  static graft_status device_count(uint32_t* out_count);
  static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties);
  static graft_status device_open(uint32_t ordinal, graft_device* out_device);
  static graft_status device_close(graft_device device);
};
struct IdentitySlots {
  static graft_status device_identity(uint32_t ordinal, graft_device_identity* identity);
};
struct SensorSlots {
  static graft_status device_sensor(graft_device device, uint32_t sensor, int64_t* out_value);
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_DEVICE_H_
