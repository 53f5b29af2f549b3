// src/runtime/topology/device_link.cpp: how bytes get from one device of a driver to another.
#include "runtime/topology/device_link.h"

#include <string>

#include "runtime/driver/error.h"
#include "runtime/driver/facts_room.h"

namespace graft {
const char* link_name(uint32_t kind) {
  switch (kind) {
#define GRAFT_CASE(name, value, text) \
  case GRAFT_LINK_##name:             \
    return text;
    GRAFT_LINKS(GRAFT_CASE)
#undef GRAFT_CASE
    default:
      return nullptr;
  }
}

DeviceLink read_link(const Driver& driver, uint32_t from, uint32_t to) {
  const graft_driver_table& table = driver.table();
  if (table.device_link == nullptr) {
    return {table.peer_copy == nullptr ? GRAFT_LINK_HOST : GRAFT_LINK_BUS, 0};
  }
  FactsRoom<graft_device_link> room;
  const graft_device_link& link = room.facts;
  const std::string device = "device " + std::to_string(from);
  const graft_status status = Driver::call_locked(table.device_link, from, to, &room.facts);
  if (status != GRAFT_OK) driver.fail(status, "device_link", device, {});
  if (room.overrun()) {
    throw Error(GRAFT_INVALID_ARGUMENT, device + " of driver '" + driver.name() +
                                            "': device_link wrote more than struct_size bytes. "
                                            "Ask its vendor.");
  }
  if (link_name(link.kind) == nullptr) return {};
  return {static_cast<graft_link_kind>(link.kind), link.bytes_per_second};
}

}  // namespace graft
