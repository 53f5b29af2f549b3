// tests/drivers/check/other_process.h: a second process for a test, and the line between the two.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace graft::check {

// Runs body(process) in a forked child that may open devices of its own: fork it before the test
// opens any. Both sides send and receive plain values, each on its own object; a line whose other
// end is gone throws std::runtime_error. What body throws ends the child with 1.
class OtherProcess {
 public:
  template <class Body>
  explicit OtherProcess(Body&& body) {
    int ends[2] = {-1, -1};
    require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair failed");
    id_ = ::fork();
    line_ = ends[id_ == 0 ? 1 : 0];
    ::close(ends[id_ == 0 ? 0 : 1]);
    if (id_ != 0) return;
    int code = 1;
    try {
      body(*this);
      code = 0;
    } catch (...) {
    }
    ::_exit(code);
  }
  ~OtherProcess() {
    hang_up();
    wait();
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  template <class T>
  void send(const T& value) {
    require(::send(line_, &value, sizeof value, MSG_NOSIGNAL) == ssize_t{sizeof value},
            "the other process has ended");
  }
  template <class T>
  T receive() {
    T value{};
    require(::recv(line_, &value, sizeof value, MSG_WAITALL) == ssize_t{sizeof value},
            "the other process has ended: something failed there");
    return value;
  }
  // Tells the other side to go on, and waits to be told.
  void go() { send('g'); }
  void stop() { receive<char>(); }

  // Waits for its end; whether it ended well.
  bool wait() {
    if (id_ <= 0) return content_;
    int state = 0;
    ::waitpid(id_, &state, 0);
    id_ = -1;
    return content_ = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }
  void kill() {
    ::kill(id_, SIGKILL);
    wait();
  }
  void hang_up() {
    if (line_ >= 0) ::close(line_);
    line_ = -1;
  }

 private:
  static void require(bool condition, const char* text) {
    if (!condition) throw std::runtime_error(text);
  }

  pid_t id_ = -1;
  int line_ = -1;
  bool content_ = false;
};

}  // namespace graft::check
