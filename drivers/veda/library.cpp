// drivers/veda/library.cpp: libveda, found at run time, and its errors in Graft's words.
#include "library.h"

#include <dlfcn.h>

#include "settings.h"

namespace graft::veda {

Api loaded_api = {};

namespace {

struct Loading {
  graft_status status = GRAFT_OK;
  std::string problem;
};

Loading load() {
  const std::string& name = settings().library;
  // Never closed: its threads and its handlers of the process's end run code of it.
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return {GRAFT_NOT_FOUND, "libveda does not load: " + std::string(why != nullptr ? why : name) +
                                 ": install NEC's VEDA, or set GRAFT_VEDA_LIBRARY to its path"};
  }
  std::string missing;
#define GRAFT_VEDA_OPTIONAL(name, parameters) \
  loaded_api.name = reinterpret_cast<decltype(Api::name)>(dlsym(library, "veda" #name));
#define GRAFT_VEDA_REQUIRED(name, parameters) \
  GRAFT_VEDA_OPTIONAL(name, parameters)       \
  if (loaded_api.name == nullptr) missing += " veda" #name;
  GRAFT_VEDA_FUNCTIONS(GRAFT_VEDA_REQUIRED, GRAFT_VEDA_OPTIONAL)
#undef GRAFT_VEDA_REQUIRED
#undef GRAFT_VEDA_OPTIONAL
  if (missing.empty()) return {};
  return {GRAFT_VERSION_MISMATCH,
          name + " is not VEDA, or too old: it lacks" + missing + ": install VEDA 1.5 or newer"};
}

const char* name_of(VEDAresult result) {
  switch (result) {
#define GRAFT_VEDA_NAME(code, name) \
  case name:                        \
    return #name;
    GRAFT_VEDA_RESULTS(GRAFT_VEDA_NAME)
#undef GRAFT_VEDA_NAME
  }
  return nullptr;
}

}  // namespace

graft_status load_library(std::string* out_problem) {
  static const Loading* loading = new Loading(load());
  *out_problem = loading->problem;
  return loading->status;
}

std::string Called::text() const {
  const char* name = name_of(result);
  return (name != nullptr ? name : "VEDA error " + std::to_string(int(result))) + " in " + function;
}

graft_status Called::status(graft_status otherwise) const {
  switch (result) {
    case VEDA_SUCCESS:
      return GRAFT_OK;
    case VEDA_ERROR_OUT_OF_MEMORY:
      return GRAFT_OUT_OF_MEMORY;
    case VEDA_ERROR_CONTEXT_IS_DESTROYED:
    case VEDA_ERROR_SHUTTING_DOWN:
      return GRAFT_DEVICE_LOST;
    case VEDA_ERROR_FUNCTION_NOT_FOUND:
    case VEDA_ERROR_UNKNOWN_KERNEL:
      return GRAFT_NOT_FOUND;
    case VEDA_ERROR_INVALID_ARGS:
    case VEDA_ERROR_INVALID_VALUE:
    case VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED:
    case VEDA_ERROR_OUT_OF_BOUNDS:
    case VEDA_ERROR_UNKNOWN_VPTR:
    case VEDA_ERROR_MEMORY_MISALIGNED:
      return GRAFT_INVALID_ARGUMENT;
    case VEDA_ERROR_NOT_IMPLEMENTED:
    case VEDA_ERROR_TODO:
      return GRAFT_UNSUPPORTED;
    default:
      return otherwise;
  }
}

}  // namespace graft::veda
