// tests/drivers/veda/veda_driver.h: the VEDA driver's library, loaded through its table, on the
// emulated libveda.
#ifndef GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graft/driver.h"

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

// Device 0 and a stream of it, for one test. Its calls expect success unless they give a status.
struct Session {
  explicit Session(uint32_t ordinal = 0);
  ~Session();

  graft_address allocate(uint64_t bytes);
  graft_stream new_stream();
  graft_event new_event(bool timed = false);
  graft_kernel kernel(const char* name, const std::string& source = "");  // of kKernels or source
  graft_status launch(graft_kernel kernel, uint64_t grid, std::vector<graft_argument> arguments,
                      uint32_t tag = 0);
  graft_status upload(graft_address to, const void* from, uint64_t bytes, uint32_t tag = 0);
  graft_status download(void* to, graft_address from, uint64_t bytes);  // synchronises
  graft_address put(const std::vector<int>& values);
  std::vector<int> get(graft_address address, uint64_t count);

  graft_device device = nullptr;
  graft_stream stream = nullptr;

 private:
  std::vector<graft_address> allocations_;
  std::vector<graft_stream> streams_;
  std::vector<graft_event> events_;
  std::vector<graft_program> programs_;
};

// What program_compile says of a source, and the blob.
graft_status compile(graft_device device, const std::string& source, std::string* out_blob);

// Dialect "c":
//   add_n(int* x, i64 n)        x[i] += n
//   gather(int** rows, int* x)  x[i] = rows[i][0]: loads addresses from memory
//   crash(int* x)               writes to address 8
extern const char kKernels[];

graft_argument address(graft_address value, uint64_t bytes);
graft_argument scalar(int64_t value);

}  // namespace graft::veda_test

#endif  // GRAFT_TESTS_DRIVERS_VEDA_VEDA_DRIVER_H_
