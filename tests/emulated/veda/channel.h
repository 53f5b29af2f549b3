// tests/emulated/veda/channel.h: one end of the socket between the library and the process of a
// device.
#ifndef GRAFT_TESTS_EMULATED_VEDA_CHANNEL_H_
#define GRAFT_TESTS_EMULATED_VEDA_CHANNEL_H_

#include <cstddef>

#include "tests/emulated/veda/protocol.h"

namespace emulated {

// Owns the file descriptor. One thread at a time; shut_down from any thread.
class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Both move size bytes, whole. False if the other end is gone, or if data is no memory of this
  // process: errno is then EFAULT.
  bool send(const void* data, std::size_t size);
  bool receive(void* data, std::size_t size);

  // Ends every send and receive, here and at the other end.
  void shut_down();

 private:
  int file_;
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_CHANNEL_H_
