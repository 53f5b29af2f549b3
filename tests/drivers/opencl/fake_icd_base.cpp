// tests/drivers/opencl/fake_icd_base.cpp: finds PoCL, which does the work beneath the fake ICD.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "fake_icd.h"

// What every handle of an ICD begins with.
struct _cl_platform_id {
  cl_icd_dispatch* dispatch;
};

namespace graft::fake_cl {
namespace {

struct Base {
  Api api = {};
  cl_platform_id platform = nullptr;
};

[[noreturn]] void give_up(const char* library, const char* why) {
  std::fprintf(stderr, "the fake ICD needs PoCL (%s; GRAFT_FAKE_CL_BASE names another): %s\n",
               library, why != nullptr ? why : "it is no ICD");
  std::abort();
}

Base* load() {
  const char* name = std::getenv("GRAFT_FAKE_CL_BASE");
  if (name == nullptr || *name == '\0') name = "libpocl.so.2";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up(name, dlerror());
  auto function = reinterpret_cast<decltype(&::clGetExtensionFunctionAddress)>(
      dlsym(library, "clGetExtensionFunctionAddress"));
  if (function == nullptr) give_up(name, dlerror());
  auto platforms =
      reinterpret_cast<decltype(&::clGetPlatformIDs)>(function("clIcdGetPlatformIDsKHR"));
  auto* base = new Base;
  if (platforms == nullptr || platforms(1, &base->platform, nullptr) != CL_SUCCESS) {
    give_up(name, "it lists no platform");
  }
  const cl_icd_dispatch& table = *base->platform->dispatch;
#define GRAFT_FAKE_READ(name) base->api.name = table.cl##name;
  GRAFT_CL_FUNCTIONS(GRAFT_FAKE_READ, GRAFT_FAKE_READ)
#undef GRAFT_FAKE_READ
  return base;
}

const Base& base() {
  static const Base* const instance = load();
  return *instance;
}

}  // namespace

const Api& real() { return base().api; }

cl_platform_id base_platform() { return base().platform; }

cl_platform_id broken_platform() {
  static _cl_platform_id broken = {base_platform()->dispatch};
  return &broken;
}

}  // namespace graft::fake_cl
