// tests/drivers/abi_loader.cpp: loads a driver as Graft does and moves bytes through it.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "runtime/driver/library.h"

namespace {

// Properties with room behind them that no driver may touch; the fields beyond a driver's are 0.
bool reads_properties(const graft::Driver& driver) {
  struct {
    graft_device_properties properties{};
    unsigned char beyond[64];
  } room;
  std::memset(room.beyond, 0xa5, sizeof room.beyond);
  room.properties.struct_size = sizeof room.properties;
  driver.check(driver.table().device_properties(0, &room.properties), "device_properties");
  for (const unsigned char one : room.beyond) {
    if (one != 0xa5) return false;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&room.properties);
  for (size_t i = sizeof(graft_device_properties);
       i-- > offsetof(graft_device_properties, dialect);) {
    if (bytes[i] != 0) return false;  // tiny.c has no dialect and states no limit
  }
  return room.properties.compute_units == 3;
}

// Prints each slot of an extension's table with what it returns.
template <class Table>
void print_table(const graft::Driver& driver) {
  const auto* table = driver.extension<Table>();
  if (table == nullptr) return;
  const graft::TableFacts& facts = graft::table_facts<Table>;
  for (size_t i = 0; i < facts.slots.size(); ++i) {
    graft_status (*slot)() = nullptr;
    std::memcpy(&slot, reinterpret_cast<const char*>(table + 1) - (facts.slots.size() - i) * 8, 8);
    std::printf("%s %s %d\n", facts.name, facts.slots[i].name, slot == nullptr ? 0 : slot());
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const auto driver = graft::Driver::load(words[1]);
  const graft_driver_table& table = driver->table();
  graft_device device = nullptr;
  graft_stream stream = nullptr;
  graft_address address = 0;
  char sent[] = "bytes that come back";
  char got[sizeof sent] = "";
  driver->check(table.device_open(0, &device), "device_open");
  driver->check(table.stream_create(device, 0, &stream), "stream_create");
  driver->check(table.memory_allocate(device, sizeof sent, &address), "memory_allocate");
  driver->check(table.copy(stream, address, reinterpret_cast<uint64_t>(sent), sizeof sent,
                           GRAFT_HOST_TO_DEVICE, 0),
                "copy");
  driver->check(table.copy(stream, reinterpret_cast<uint64_t>(got), address, sizeof sent,
                           GRAFT_DEVICE_TO_HOST, 0),
                "copy");
  driver->check(table.stream_synchronize(stream), "stream_synchronize");
#define GRAFT_LOOK(presence, name, parameters) \
  if (table.name == nullptr) std::printf("empty " #name "\n");
  GRAFT_DRIVER_SLOTS(GRAFT_LOOK)
#define GRAFT_PRINT(name, version, SLOTS) print_table<graft_##name##_table>(*driver);
  GRAFT_EXTENSIONS(GRAFT_PRINT)
  if (std::memcmp(sent, got, sizeof sent) != 0 || !reads_properties(*driver)) return 1;
  std::puts("round trip ok");
  return 0;
}
