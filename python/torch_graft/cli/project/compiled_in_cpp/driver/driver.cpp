// driver/driver.cpp: the table, with the compiler that takes Graft's kernels.
//
// For the real chip: change the name only if the device shall be called otherwise, and the dialect
// if its compiler takes another language of GRAFT_DIALECTS.
#include "graft/driver_slot.h"
#include "kernel.h"
#include "slots.h"

namespace acme_driver {

const char* const kDialect = "c";

namespace {

struct Slots : CommonSlots, ProgramSlots, KernelSlots {};

constexpr graft_driver_table kTable = graft::table_of<Slots>("acme");

}  // namespace
}  // namespace acme_driver

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &acme_driver::kTable);
}
