// tests/emulated/veda/channel.cpp: one end of the socket between the library and the process of a
// device.
#include "tests/emulated/veda/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace emulated {

Channel::~Channel() { ::close(file_); }

bool Channel::send(const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(file_, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool Channel::receive(void* data, std::size_t size) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    errno = 0;
    const ssize_t received = ::recv(file_, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

void Channel::shut_down() { ::shutdown(file_, SHUT_RDWR); }

}  // namespace emulated
