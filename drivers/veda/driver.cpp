// drivers/veda/driver.cpp: the table of the VEDA driver; README.md says why slots are missing.
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

struct Slots : DeviceSlots,
               IdentitySlots,
               SensorSlots,
               MemorySlots,
               StreamSlots,
               EventSlots,
               TransferSlots,
               ProgramSlots,
               KernelSlots {};

constexpr graft_driver_table kTable = table_of<Slots>("veda");

}  // namespace
}  // namespace graft::veda

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &graft::veda::kTable);
}
