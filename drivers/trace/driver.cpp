// drivers/trace/driver.cpp: the layer as a driver of its own, for programs that know only drivers.
#include <dlfcn.h>

#include <cstdlib>

#include "graft/driver_trace.h"
#include "settings.h"

// The setting driver=PATH names the library behind.
graft_status graft_driver_query(graft_driver_table* table) {
  const char* const text = std::getenv("GRAFT_DRIVER_TRACE");
  graft::trace::TraceSettings settings;
  if (text == nullptr || !graft::trace::parse_settings(text, &settings).empty()) {
    return GRAFT_INVALID_ARGUMENT;
  }
  void* const library = dlopen(settings.driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const query = settings.driver.empty() || library == nullptr
                          ? nullptr
                          : dlsym(library, "graft_driver_query");
  if (query == nullptr) return GRAFT_NOT_FOUND;
  return graft_trace_front(reinterpret_cast<graft_driver_query_function>(query), text, table,
                           nullptr, 0);
}
