// tests/drivers/asked.cpp: the host driver with graft.ops that takes no call: what asking costs.
//
// GRAFT_ASKED_DRIVER is the path of the host driver. GRAFT_ASKED=known: it says that it knows every
// operator, and refuses to plan each call; otherwise it knows none.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "graft/driver.h"
#include "graft/extensions.h"
#include "tests/drivers/base_driver.h"

namespace {

graft_driver_table base;
std::atomic<int> planned{0};

graft_status operation_known(graft_device, const char*) {
  const char* const said = std::getenv("GRAFT_ASKED");
  return said != nullptr && std::strcmp(said, "known") == 0 ? GRAFT_OK : GRAFT_UNSUPPORTED;
}

graft_status operation_plan(graft_device, const graft_operation*, graft_plan_needs*, graft_plan*) {
  ++planned;
  return GRAFT_UNSUPPORTED;
}

graft_status operation_execute(graft_stream, graft_plan, const graft_launch*) {
  return GRAFT_INTERNAL;
}

graft_status plan_destroy(graft_plan) { return GRAFT_OK; }

const graft_ops_table kOperations = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), operation_known,
                                     operation_plan, operation_execute, plan_destroy};

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (std::strcmp(name, "graft.ops") != 0) return base.extension(name, version, out_table);
  if (version != 1) return GRAFT_NOT_FOUND;
  *out_table = &kOperations;
  return GRAFT_OK;
}

}  // namespace

// How often Graft asked for a plan.
extern "C" GRAFT_DRIVER_EXPORT int graft_asked_planned() { return planned; }

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  const char* const path = std::getenv("GRAFT_ASKED_DRIVER");
  if (path == nullptr) return GRAFT_NOT_FOUND;
  if (const graft_status status = load_base(path, &base); status != GRAFT_OK) return status;
  graft_driver_table mine = base;
  mine.name = "asked";
  if (std::getenv("GRAFT_ASKED") != nullptr) mine.extension = extension;
  return graft_driver_fill(table, &mine);
}
