// tests/drivers/veda/driver.cpp: loads the VEDA driver for all its tests.
#include "driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/emulated/veda/control.h"

namespace graft::veda_test {
namespace {

constexpr char kLibrary[] = GRAFT_TEST_BINARY_DIR "/tests/veda/libveda.so.0";

// A function of the library that the driver has loaded.
template <class Function>
Function* control(const char* name) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  dlclose(library);
  return found;
}

}  // namespace

const char kKernels[] =
    "typedef union { void* address; unsigned long long bits; } argument;\n"
    "typedef unsigned long long u64;\n"
    "void add_n(const argument* a, u64 begin, u64 end) {\n"
    "  int* x = a[0].address;\n"
    "  for (u64 i = begin; i < end; ++i) x[i] += (int)a[1].bits;\n"
    "}\n"
    "void gather(const argument* a, u64 begin, u64 end) {\n"
    "  int** rows = a[0].address;\n"
    "  int* x = a[1].address;\n"
    "  for (u64 i = begin; i < end; ++i) x[i] = rows[i][0];\n"
    "}\n"
    "void crash(const argument* a, u64 begin, u64 end) {\n"
    "  *(volatile int*)8 = 1;\n"
    "}\n";

const graft_driver_table& driver() {
  static const graft_driver_table table =
      driver_test::loaded(GRAFT_TEST_DRIVER_DIR "/graft_veda.so");
  return table;
}

std::string last_message() { return driver_test::last_message(driver()); }

std::string emulated(const std::string& settings, const std::string& more) {
  std::string all = std::string("GRAFT_VEDA_LIBRARY=") + kLibrary + " GRAFT_VE_CC=cc";
  std::istringstream words(settings);
  for (std::string word; words >> word;) all += " EMULATED_VEDA_" + word;
  return more.empty() ? all : all + " " + more;
}

int device_process() {
  auto* process = control<int(VEDAdevice)>("emulated_veda_process");
  return process != nullptr ? process(0) : -1;
}

void plant(const std::string& calls, const std::string& device) {
  auto* function = control<VEDAresult(const char*, const char*)>("emulated_veda_plant");
  ASSERT_NE(function, nullptr) << "the driver has not loaded the emulated libveda";
  ASSERT_EQ(function(calls.c_str(), device.c_str()), VEDA_SUCCESS) << calls << " " << device;
}

Session::Session(uint32_t ordinal) : driver_test::DriverSession(driver(), ordinal) {}

graft_kernel Session::kernel(const char* name, const std::string& source) {
  return kernel_of(source.empty() ? kKernels : source, name);
}

graft_status Session::launch(graft_kernel kernel, uint64_t grid,
                             const std::vector<graft_argument>& arguments, uint32_t tag) {
  return launch_groups(kernel, grid, 1, arguments, tag);
}

graft_argument scalar(int64_t value) { return driver_test::int64(uint64_t(value)); }

}  // namespace graft::veda_test
