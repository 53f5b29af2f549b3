/* driver/driver.c: memory, copies, streams and events; operators run on the CPU, counted.
 *
 * For the real chip: its kernels are the next step. `python -m torch_graft new-driver` with
 * --kernels own or --kernels c writes a project that has them. */
#include "driver.h"

const char* const driver_dialect = "";

static const graft_driver_table kTable = {
    DRIVER_SLOTS,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
