// tests/drivers/opencl/driver.cpp: loads the OpenCL driver for all its tests.
#include "driver.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace graft::opencl_test {

const char kKernels[] =
    "#ifdef GRAFT_MEMORY_OFFSETS\n"
    "#define ARRAY __global char* base, ulong offset\n"
    "#define OPEN __global int* x = (__global int*)(base + offset);\n"
    "#else\n"
    "#define ARRAY __global int* x\n"
    "#define OPEN\n"
    "#endif\n"
    "__kernel void add_n(ARRAY, int n) { OPEN x[get_global_id(0)] += n; }\n"
    "__kernel void turn(ARRAY, __local int* room) {\n"
    "  OPEN\n"
    "  const size_t i = get_local_id(0), n = get_local_size(0);\n"
    "  room[i] = x[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  x[get_global_id(0)] = room[(i + n - 1) % n];\n"
    "}\n"
    "__kernel void spin(ARRAY, int rounds) {\n"
    "  OPEN\n"
    "  volatile int y = x[get_global_id(0)];\n"
    "  for (int i = 0; i < rounds; ++i) y = y * 3 + 1;\n"
    "  x[get_global_id(0)] = y;\n"
    "}\n";

const graft_driver_table& driver() {
  static const graft_driver_table table =
      driver_test::loaded(GRAFT_TEST_DRIVER_DIR "/graft_opencl.so");
  return table;
}

std::string last_message() { return driver_test::last_message(driver()); }

namespace {

// The table, where the machine has a device of this ordinal.
const graft_driver_table& driver_with(uint32_t ordinal) {
  uint32_t count = 0;
  EXPECT_EQ(driver().device_count(&count), GRAFT_OK) << last_message();
  if (count <= ordinal) {
    ADD_FAILURE() << "this machine has " << count << " OpenCL devices, the test needs "
                  << ordinal + 1 << ": tools/setup installs PoCL (pocl-opencl-icd)";
    std::fflush(stdout);
    std::_Exit(1);
  }
  return driver();
}

}  // namespace

std::string fake(const std::string& plan) {
  return "GRAFT_OPENCL_LIBRARY=" GRAFT_TEST_BINARY_DIR "/tests/graft_fake_cl.so GRAFT_FAKE_CL=" +
         plan;
}

std::string old_loader(const std::string& plan) {
  return "GRAFT_OPENCL_LIBRARY=" GRAFT_TEST_BINARY_DIR
         "/tests/graft_fake_cl_old.so GRAFT_FAKE_CL=" +
         plan;
}

std::vector<std::string> every_memory() {
  return {"GRAFT_OPENCL_MEMORY=svm", fake("coarse_svm"),     fake("no_svm"),
          fake("no_svm,usm"),        fake("no_svm,address"), old_loader("version:1.2")};
}

Session::Session(uint32_t ordinal) : driver_test::DriverSession(driver_with(ordinal), ordinal) {}

std::string Session::compile(const std::string& source, graft_status expected) {
  std::string blob;
  EXPECT_EQ(driver_test::DriverSession::compile(source, &blob), expected) << last_message();
  return blob;
}

graft_kernel Session::kernel(const char* name, const std::string& source) {
  return kernel_of(source.empty() ? kKernels : source, name);
}

graft_status Session::launch(graft_kernel kernel, uint64_t grid,
                             const std::vector<graft_argument>& arguments, uint32_t group,
                             uint32_t tag) {
  return launch_groups(kernel, grid, group, arguments, tag);
}

graft_argument scalar(int value) { return driver_test::int32(value); }

graft_argument local(uint64_t bytes) { return {GRAFT_ARGUMENT_LOCAL, 0, 0, 0, 0, bytes}; }

}  // namespace graft::opencl_test
