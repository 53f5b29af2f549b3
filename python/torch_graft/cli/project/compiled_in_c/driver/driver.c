/* driver/driver.c: the table, with the compiler that takes Graft's kernels.
 *
 * For the real chip: change the name only if the device shall be called otherwise, and the dialect
 * if its compiler takes another language of GRAFT_DIALECTS. */
#include "driver.h"

const char* const driver_dialect = "c";

static const graft_driver_table kTable = {
    DRIVER_SLOTS,
    .program_compile = program_compile,
    .program_load = program_load,
    .program_unload = program_unload,
    .toolchain_fingerprint = toolchain_fingerprint,
    .kernel_find = kernel_find,
    .kernel_launch = kernel_launch,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
