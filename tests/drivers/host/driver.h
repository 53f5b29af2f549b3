// tests/drivers/host/driver.h: the host driver's library, loaded through its table alone.
#ifndef GRAFT_TESTS_DRIVERS_HOST_HOST_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_HOST_HOST_DRIVER_H_

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/drivers/driver_session.h"

namespace graft::host_test {

// The table; aborts the test program with the linker's message when the library does not load.
const graft_driver_table& driver();

// Device 0 and a stream of it, for one test.
struct Session : driver_test::DriverSession {
  explicit Session(uint32_t ordinal = 0);
  // Compiles C, loads it and finds one kernel; the program is unloaded at the end of the test.
  graft_kernel kernel(const std::string& source, const char* name);
  graft_status launch(graft_kernel kernel, uint64_t grid,
                      const std::vector<graft_argument>& arguments, uint32_t tag = 0);
};

// Small float32 numbers whose products and short sums are exact, and their way to a session's
// device.
class Data {
 public:
  Data(Session& session, uint32_t seed) : session_(session), random_(seed) {}

  std::vector<float> values(uint64_t count);
  graft_address put(const std::vector<float>& x);

 private:
  Session& session_;
  std::mt19937 random_;
};

using driver_test::address;
graft_argument scalar_u64(uint64_t value);
std::string last_message();

// Runs the tests of a filter in a fresh process with more environment ("A=1 B=2"), for settings
// that a process reads once. Returns its exit status, 128 + signal when it died.
int run_in_environment(const std::string& filter, const std::string& environment,
                       std::string* output = nullptr);

// At the begin of a test: runs the same test in a fresh process per environment, expects it to
// pass and returns true; in such a process it returns false, and the test's body follows.
bool reran(const std::vector<std::string>& environments);

// Whether this process was started by reran(), or with the variable kRerun.
bool is_rerun();
inline constexpr char kRerun[] = "GRAFT_TEST_RERUN=1";

}  // namespace graft::host_test

#endif  // GRAFT_TESTS_DRIVERS_HOST_HOST_DRIVER_H_
