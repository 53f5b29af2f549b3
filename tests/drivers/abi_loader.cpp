// tests/drivers/abi_loader.cpp: loads a driver as Graft does and moves bytes through it.
#include <cstdio>
#include <cstring>

#include "runtime/driver_library.h"

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
  if (std::memcmp(sent, got, sizeof sent) != 0) return 1;
  std::puts("round trip ok");
  return 0;
}
