// tests/drivers/veda/driver.h: the VEDA driver's library, loaded through its table, on the
// emulated libveda.
#ifndef GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/drivers/driver_session.h"

namespace graft::veda_test {

// The table; aborts the test program with the linker's message when the library does not load.
const graft_driver_table& driver();
std::string last_message();

// An environment for host_test::reran(): the emulated libveda with settings of its own, such as
// "DEVICES=2 MEMORY=1M" (without EMULATED_VEDA_), and the system's compiler; and more variables.
std::string emulated(const std::string& settings = "", const std::string& more = "");

// The process that is device 0, or -1.
int device_process();
// Plants faults into the emulated libveda: "MemAlloc:2:UNKNOWN" and "exception:*:1"; "": none.
void plant(const std::string& calls, const std::string& device = "");

// Device 0 and a stream of it, for one test.
struct Session : driver_test::DriverSession {
  explicit Session(uint32_t ordinal = 0);
  graft_kernel kernel(const char* name, const std::string& source = "");  // of kKernels or source
  graft_status launch(graft_kernel kernel, uint64_t grid,
                      const std::vector<graft_argument>& arguments, uint32_t tag = 0);
};

// Dialect "c":
//   add_n(int* x, i64 n)        x[i] += n
//   gather(int** rows, int* x)  x[i] = rows[i][0]: loads addresses from memory
//   crash(int* x)               writes to address 8
extern const char kKernels[];

using driver_test::address;
graft_argument scalar(int64_t value);

}  // namespace graft::veda_test

#endif  // GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_
