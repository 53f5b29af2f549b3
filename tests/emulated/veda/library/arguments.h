// tests/emulated/veda/library/arguments.h: the arguments of a kernel, from vedaArgsSet to the
// device.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ARGUMENTS_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ARGUMENTS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/emulated/veda/request/link.h"

namespace emulated {

// One argument. A buffer's memory is the host's: read when the kernel starts (IN, INOUT), written
// when it has ended (INOUT, OUT), so it must live until then.
struct HostArgument {
  Argument wire = {};
  void* buffer = nullptr;
};

// Asks the device to call function with arguments and gives what it returned.
std::uint64_t call_device(Link& link, std::uint64_t function,
                          const std::vector<HostArgument>& arguments);

// The bytes of all buffers together.
std::uint64_t buffer_bytes(const std::vector<HostArgument>& arguments);

}  // namespace emulated

// VEDAargs points to one. Thread-safe.
struct veo_args {
 public:
  // Throws Failure(INVALID_ARGS) for an index below 0 or from 48 on.
  void set(int index, emulated::HostArgument argument);

  std::vector<emulated::HostArgument> list();
  // Whether a launch has not ended yet: what begin_launch gave lives as long as its request.
  bool in_use() const { return *launches_ > 0; }
  std::shared_ptr<void> begin_launch();

 private:
  std::mutex mutex_;
  std::vector<emulated::HostArgument> arguments_;
  std::shared_ptr<std::atomic<int>> launches_ = std::make_shared<std::atomic<int>>(0);
};

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ARGUMENTS_H_
