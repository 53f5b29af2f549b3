// src/runtime/driver/device_order.h: decides which devices of the loaded drivers count, and in what
// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"

namespace graft {

// Why a driver, a device or an entry of GRAFT_DEVICES is not used.
struct Refusal {
  std::string path;    // the driver's, or the environment variable's name
  std::string reason;  // with the remedy
};

// A driver that has no device here.
struct Absence {
  const Driver* driver;
  std::string reason;  // the driver's words; may be ""
};

// A device as its driver describes it, without opening it.
struct DeviceDescription {
  int index;
  Driver* driver;
  uint32_t ordinal;
  graft_device_properties properties;
};

// Whether a device of the driver can count under such a list: if not, its driver need not be asked.
bool may_count(const std::string& driver, const char* list);

// Picks from found by a list as GRAFT_DEVICES has it ("cuda,opencl:1,host"); null or empty: all of
// them, but simulated ones only when there is no other and GRAFT_FEATURE_ONLY_NAMED's never. An
// item that matches nothing is added to problems under the variable's name, a device that is named
// twice counts once. Returns positions in found.
std::vector<size_t> order_devices(const std::vector<DeviceDescription>& found,
                                  const std::string& variable, const char* list,
                                  std::vector<Refusal>& problems);

// Whether devices that count among these may not count beside those of other drivers, under such a
// list: simulated ones, without a list.
bool order_needs_all(const std::vector<DeviceDescription>& counting, const char* list);

}  // namespace graft
