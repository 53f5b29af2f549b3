// src/runtime/topology/device_link.cpp: how bytes get from one device of a driver to another.
#include "runtime/topology/device_link.h"

#include <string>

namespace graft {
namespace {

bool is_known(uint32_t kind) {
  switch (kind) {
#define GRAFT_CASE(name, value, text) case GRAFT_LINK_##name:
    GRAFT_LINKS(GRAFT_CASE)
#undef GRAFT_CASE
    return true;
    default:
      return false;
  }
}

}  // namespace

const char* link_name(graft_link_kind kind) {
  switch (kind) {
#define GRAFT_CASE(name, value, text) \
  case GRAFT_LINK_##name:             \
    return text;
    GRAFT_LINKS(GRAFT_CASE)
#undef GRAFT_CASE
  }
  return "unknown";
}

DeviceLink read_link(const Driver& driver, uint32_t from, uint32_t to) {
  const graft_driver_table& table = driver.table();
  if (table.device_link == nullptr) {
    return {table.peer_copy == nullptr ? GRAFT_LINK_HOST : GRAFT_LINK_BUS, 0};
  }
  graft_device_link link{};
  link.struct_size = sizeof(link);
  const graft_status status = Driver::call_locked(table.device_link, from, to, &link);
  if (status != GRAFT_OK) driver.fail(status, "device_link", "device " + std::to_string(from), {});
  if (!is_known(link.kind)) return {};
  return {static_cast<graft_link_kind>(link.kind), link.bytes_per_second};
}

}  // namespace graft
