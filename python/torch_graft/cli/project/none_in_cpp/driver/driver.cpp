// driver/driver.cpp: memory, copies, streams and events; operators run on the CPU, counted.
//
// For the real chip: its kernels are the next step. `python -m torch_graft new-driver` with
// --kernels own or --kernels c writes a project that has them.
#include "graft/driver_slot.h"
#include "slots.h"

namespace acme_driver {

const char* const kDialect = "";

namespace {

constexpr graft_driver_table kTable = graft::table_of<CommonSlots>("acme");

}  // namespace
}  // namespace acme_driver

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &acme_driver::kTable);
}
