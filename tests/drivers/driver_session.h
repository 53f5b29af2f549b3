// tests/drivers/driver_session.h: a driver's library, loaded through its table, and one of its
// devices.
#ifndef GRAFT_TESTS_DRIVERS_DRIVER_SESSION_H_
#define GRAFT_TESTS_DRIVERS_DRIVER_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graft/driver.h"

namespace graft::driver_test {

// The table of the library at path; ends the test program with the linker's message if it does not
// load.
graft_driver_table loaded(const char* path);

// What the driver says of the calling thread's last error.
std::string last_message(const graft_driver_table& driver);

// A device and a stream of it, for one test; what it makes is destroyed with it. Its calls expect
// success unless they give a status. Ends the test program if the device does not open.
class DriverSession {
 public:
  // driver: lives as long as the session.
  DriverSession(const graft_driver_table& driver, uint32_t ordinal);
  ~DriverSession();
  DriverSession(const DriverSession&) = delete;
  DriverSession& operator=(const DriverSession&) = delete;

  graft_address allocate(uint64_t bytes);
  graft_stream new_stream();
  graft_event new_event(bool timed = false);

  // What program_compile says of a source, and the blob.
  graft_status compile(const std::string& source, std::string* out_blob) const;
  // Compiles source, loads it and finds one kernel.
  graft_kernel kernel_of(const std::string& source, const char* name);
  graft_status launch_groups(graft_kernel kernel, uint64_t grid, uint32_t group,
                             const std::vector<graft_argument>& arguments, uint32_t tag);

  graft_status upload(graft_address to, const void* from, uint64_t bytes, uint32_t tag = 0);
  graft_status download(void* to, graft_address from, uint64_t bytes);  // synchronises
  graft_address put(const std::vector<int>& values);
  std::vector<int> get(graft_address address, uint64_t count);

  graft_device device = nullptr;
  graft_stream stream = nullptr;

 private:
  const graft_driver_table& driver_;
  std::vector<graft_address> allocations_;
  std::vector<graft_stream> streams_;
  std::vector<graft_event> events_;
  std::vector<graft_program> programs_;
};

// Arguments of a launch.
graft_argument address(graft_address value, uint64_t bytes);  // that the kernel reads and writes
graft_argument int32(int value);
graft_argument int64(uint64_t value);

}  // namespace graft::driver_test

#endif  // GRAFT_TESTS_DRIVERS_DRIVER_SESSION_H_
