// driver/driver.cpp: the table, with the vendor's own kernels as the extension graft.ops.
//
// For the real chip: change the name only if the device shall be called otherwise. An extension of
// a library (graft.blas, graft.dnn, graft.collectives) is one more argument of find_extension.
#include "graft/driver_slot.h"
#include "operation.h"
#include "slots.h"

namespace acme_driver {

const char* const kDialect = "";

namespace {

constexpr auto kOperations = graft::extension_of<graft_ops_table, OperationSlots>();

struct Slots : CommonSlots {
  static graft_status extension(const char* name, uint32_t version, const void** out_table) {
    return graft::find_extension(name, version, out_table, kOperations);
  }
};

constexpr graft_driver_table kTable = graft::table_of<Slots>("acme");

}  // namespace
}  // namespace acme_driver

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &acme_driver::kTable);
}
