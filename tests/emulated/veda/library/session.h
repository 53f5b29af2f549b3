// tests/emulated/veda/library/session.h: what an active context has: the device's process, its
// streams and its modules.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SESSION_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SESSION_H_

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/emulated/veda/library/server.h"
#include "tests/emulated/veda/request/stream.h"

// A module is a loaded shared object of the device's process.
struct veda_module {
  std::uint64_t handle;
};

namespace emulated {

// Thread-safe. Calls that hold a session may run while another thread stops it: they then fail.
class Session {
 public:
  // Throws Failure(CANNOT_CREATE_CONTEXT).
  Session(const Settings& settings, int device, int cores, int streams);

  int stream_count() const { return static_cast<int>(streams_.size()); }
  // -1 is stream 0. Throws Failure(UNKNOWN_STREAM).
  Stream& stream(VEDAstream index);
  // -1: all. Throws the first error.
  void synchronize(VEDAstream index);
  bool lost() const { return lost_->load(); }
  pid_t process() const { return server_.process(); }

  // A request beside the streams. Throws Failure(VEO_COMMAND_ERROR) if the device is lost.
  template <class Body>
  auto control(Body&& body) {
    const std::lock_guard lock(control_mutex_);
    try {
      return body(control_);
    } catch (const Lost&) {
      lost_->store(true);
      throw_lost();
    }
  }

  VEDAmodule load(const std::string& file);  // throws Failure(MODULE_NOT_FOUND)
  void unload(VEDAmodule module);            // throws Failure(UNKNOWN_MODULE)
  VEDAfunction function(VEDAmodule module, const std::string& name);

  void stop();

 private:
  Server server_;
  std::mutex control_mutex_;
  Link control_;
  const std::shared_ptr<std::atomic<bool>> lost_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::unique_ptr<Stream>> streams_;
  std::mutex modules_mutex_;
  std::unordered_map<VEDAmodule, std::unique_ptr<veda_module>> modules_;
  std::set<std::string> names_;  // of functions; VEDAfunction points into it

  [[noreturn]] static void throw_lost();
  void require_module(VEDAmodule module);
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SESSION_H_
