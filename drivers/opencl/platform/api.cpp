// drivers/opencl/platform/api.cpp: OpenCL's functions, found in the ICD loader at run time.
#include "api.h"

#include <dlfcn.h>

#include "settings.h"

namespace graft::opencl {

Api loaded_api = {};

namespace {

std::string load() {
  const std::string& name = settings().library;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return "OpenCL does not load: " + std::string(why != nullptr ? why : name) +
           ": install an OpenCL runtime, or set GRAFT_OPENCL_LIBRARY to its loader";
  }
  std::string missing;
#define GRAFT_CL_OPTIONAL(name) \
  loaded_api.name = reinterpret_cast<decltype(Api::name)>(dlsym(library, "cl" #name));
#define GRAFT_CL_REQUIRED(name) \
  GRAFT_CL_OPTIONAL(name)       \
  if (loaded_api.name == nullptr) missing += " cl" #name;
  GRAFT_CL_FUNCTIONS(GRAFT_CL_REQUIRED, GRAFT_CL_OPTIONAL)
#undef GRAFT_CL_REQUIRED
#undef GRAFT_CL_OPTIONAL
  if (missing.empty()) return "";
  return name + " is older than OpenCL 1.2: it lacks" + missing;
}

}  // namespace

bool load_api(std::string* problem) {
  static const std::string* why = new std::string(load());
  *problem = *why;
  return why->empty();
}

}  // namespace graft::opencl
