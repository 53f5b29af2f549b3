// tests/emulated/veda/library/server.h: the process of one device, from start to end.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SERVER_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/emulated/veda/channel.h"

namespace emulated {

// Starts the file emulated_ve beside this library (posix_spawn, so the host may have threads).
// The process ends with its control channel or with its parent.
class Server {
 public:
  // file: empty for the one beside the library. Throws Failure(CANNOT_CREATE_CONTEXT).
  Server(const std::string& file, int device, long long memory, int cores, int streams);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::unique_ptr<Channel> take_control() { return std::move(control_); }
  std::unique_ptr<Channel> take_stream(int index) { return std::move(streams_[index]); }
  pid_t process() const { return process_; }

  // Collects the process, and kills it if it has not ended some time after its control channel.
  void stop();

 private:
  pid_t process_ = -1;
  std::unique_ptr<Channel> control_;
  std::vector<std::unique_ptr<Channel>> streams_;
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SERVER_H_
