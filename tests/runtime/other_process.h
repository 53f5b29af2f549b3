// tests/runtime/other_process.h: a second process for a test, and the line between the two.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "runtime/fork.h"

namespace graft::fake {

// Runs body(process) in a forked child that may open devices of its own: fork it before the test
// opens any. Both sides send and receive plain values, each on its own object.
class OtherProcess {
 public:
  template <class Body>
  explicit OtherProcess(Body&& body) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    id_ = ::fork();
    line_ = ends[id_ == 0 ? 1 : 0];
    ::close(ends[id_ == 0 ? 0 : 1]);
    if (id_ != 0) return;
    fork_state::child.store(false);  // what other tests of this program opened is not used here
    body(*this);
    ::_exit(0);
  }
  ~OtherProcess() {
    ::close(line_);
    wait();
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  template <class T>
  void send(const T& value) {
    EXPECT_EQ(::send(line_, &value, sizeof value, MSG_NOSIGNAL), ssize_t{sizeof value});
  }
  template <class T>
  T receive() {
    T value{};
    EXPECT_EQ(::recv(line_, &value, sizeof value, MSG_WAITALL), ssize_t{sizeof value});
    return value;
  }
  // Tells the other side to go on, and waits to be told.
  void go() { send('g'); }
  void stop() { receive<char>(); }

  void wait() {
    if (id_ > 0) ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }
  void kill() {
    ::kill(id_, SIGKILL);
    wait();
  }

 private:
  pid_t id_ = -1;
  int line_ = -1;
};

}  // namespace graft::fake
