// tests/drivers/base_driver.h: the driver that another one stands in front of.
#ifndef GRAFT_TESTS_DRIVERS_BASE_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_BASE_DRIVER_H_

#include <dlfcn.h>

#include "graft/driver.h"

// Loads the driver at path and fills in its table, once: a table with a name is left as it is.
// NOT_FOUND where there is no driver, else what its graft_driver_query returns.
inline graft_status load_base(const char* path, graft_driver_table* table) {
  if (table->name != nullptr) return GRAFT_OK;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* query = library == nullptr ? nullptr : dlsym(library, "graft_driver_query");
  if (query == nullptr) return GRAFT_NOT_FOUND;
  table->abi_major = GRAFT_ABI_MAJOR;
  table->abi_minor = GRAFT_ABI_MINOR;
  table->slot_count = GRAFT_SLOT_COUNT;
  return reinterpret_cast<graft_driver_query_function>(query)(table);
}

#endif  // GRAFT_TESTS_DRIVERS_BASE_DRIVER_H_
