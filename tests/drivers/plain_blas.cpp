// tests/drivers/plain_blas.cpp: the host driver with a library that computes products alone.
#include <cstring>

#include "graft/driver.h"
#include "graft/extensions.h"
#include "tests/drivers/base_driver.h"

namespace {

graft_driver_table base;
graft_blas_table base_blas;

graft_status plan(graft_device device, const graft_matmul* matmul, graft_plan_needs* out_needs,
                  graft_plan* out_plan) {
  if (matmul->epilogue_count != 0) return GRAFT_UNSUPPORTED;
  return base_blas.matmul_plan(device, matmul, out_needs, out_plan);
}

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  static graft_blas_table mine;
  const graft_status status = base.extension(name, version, out_table);
  if (status != GRAFT_OK || std::strcmp(name, "graft.blas") != 0) return status;
  base_blas = mine = *static_cast<const graft_blas_table*>(*out_table);
  mine.matmul_plan = plan;
  *out_table = &mine;
  return GRAFT_OK;
}

}  // namespace

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  if (const graft_status status = load_base(GRAFT_BASE_DRIVER, &base); status != GRAFT_OK)
    return status;
  graft_driver_table mine = base;
  mine.name = "plain_blas";
  mine.extension = extension;
  return graft_driver_fill(table, &mine);
}
