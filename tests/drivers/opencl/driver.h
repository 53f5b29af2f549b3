// tests/drivers/opencl/driver.h: the OpenCL driver's library, loaded through its table.
#ifndef GRAFT_TESTS_DRIVERS_OPENCL_OPENCL_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_OPENCL_OPENCL_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/drivers/driver_session.h"

namespace graft::opencl_test {

// The table; aborts the test program with the linker's message when the library does not load.
const graft_driver_table& driver();
std::string last_message();

// Environments for host_test::reran(): the fake ICD in place of a loader, with a plan of
// fake_icd.h; and one for every kind of memory, PoCL alone first.
std::string fake(const std::string& plan);
std::string old_loader(const std::string& plan);
std::vector<std::string> every_memory();

// Device 0 and a stream of it, for one test. Without a device the test fails and says what to do.
struct Session : driver_test::DriverSession {
  explicit Session(uint32_t ordinal = 0);
  std::string compile(const std::string& source, graft_status expected = GRAFT_OK);
  // Of kKernels, or of another source.
  graft_kernel kernel(const char* name, const std::string& source = "");
  graft_status launch(graft_kernel kernel, uint64_t grid,
                      const std::vector<graft_argument>& arguments, uint32_t group = 1,
                      uint32_t tag = 0);
};

// OpenCL C of the kernels below, for memory with addresses and without:
//   add_n(int* x, int n)                x[i] += n
//   turn(int* x, local int* room)     each group's words move one on
//   spin(int* x, int rounds)            takes long
extern const char kKernels[];

using driver_test::address;
graft_argument scalar(int value);
graft_argument local(uint64_t bytes);

}  // namespace graft::opencl_test

#endif  // GRAFT_TESTS_DRIVERS_OPENCL_OPENCL_DRIVER_H_
