/* driver/driver.c: the table, with the vendor's own kernels as the extension graft.ops.
 *
 * For the real chip: change the name only if the device shall be called otherwise. An extension
 * of a library (graft.blas, graft.dnn, graft.collectives) is one more name in the slot below. */
#include "driver.h"

#include <string.h>

#include "operation.h"

const char* const driver_dialect = "";

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (strcmp(name, "graft.ops") != 0 || version != 1) {
    return failed(GRAFT_NOT_FOUND, "there is no extension %s, version %u", name, version);
  }
  *out_table = &operation_table;
  return GRAFT_OK;
}

static const graft_driver_table kTable = {
    DRIVER_SLOTS,
    .extension = extension,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
