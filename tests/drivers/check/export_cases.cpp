// tests/drivers/check/export_cases.cpp: device memory that another process imports by a handle.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "check/cases.h"

using graft::check::pattern;
using graft::check::Session;

namespace {

constexpr uint64_t kBytes = 300000;
constexpr uint64_t kInside = 4104;  // an export may begin inside its allocation
constexpr uint64_t kUsed = kBytes - kInside;

struct Parcel {
  uint8_t handle[GRAFT_MEMORY_HANDLE_BYTES];
  uint64_t offset;
};

// A second process, forked before either opened the device. Its end of the line closes with it.
class Other {
 public:
  // body(line) runs there; what it throws ends the process with 1.
  template <class Body>
  explicit Other(Body body) {
    int ends[2] = {-1, -1};
    Session::require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair failed");
    id_ = fork();
    line_ = ends[id_ == 0 ? 1 : 0];
    close(ends[id_ == 0 ? 0 : 1]);
    if (id_ != 0) return;
    int code = 1;
    try {
      body(line_);
      code = 0;
    } catch (...) {
    }
    _exit(code);
  }
  ~Other() { end(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  int line() const { return line_; }

  // Hangs up, waits for the process and says whether it was content.
  bool end() {
    if (id_ < 0) return content_;
    close(line_);
    int state = 0;
    waitpid(id_, &state, 0);
    id_ = -1;
    return content_ = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }

 private:
  pid_t id_ = -1;
  int line_ = -1;
  bool content_ = false;
};

template <class T>
void tell(int line, const T& value) {
  Session::require(send(line, &value, sizeof value, MSG_NOSIGNAL) == ssize_t(sizeof value),
                   "the other process has ended");
}

template <class T>
T hear(int line) {
  T value = {};
  Session::require(recv(line, &value, sizeof value, MSG_WAITALL) == ssize_t(sizeof value),
                   "the other process has ended: an import or a copy failed there");
  return value;
}

Parcel export_inside(Session& session, graft_address address) {
  Parcel parcel = {};
  graft_address begin = 0;
  session.expect(session.table.memory_export(session.device, address, parcel.handle, &begin),
                 GRAFT_OK, "memory_export");
  session.require(begin != 0 && begin <= address, "memory_export: the begin is past the address");
  parcel.offset = address - begin;
  return parcel;
}

graft_address import_of(Session& session, const Parcel& parcel) {
  graft_address begin = 0;
  session.expect(session.table.memory_import(session.device, parcel.handle, &begin), GRAFT_OK,
                 "memory_import");
  return begin;
}

}  // namespace

DRIVER_CASE(both_ways, "export: another process sees the bytes and changes them",
            "memory_export memory_import memory_release", kLoaded) {
  Other borrower([&](int line) {
    session.open();
    graft_stream stream = session.stream();
    const Parcel parcel = hear<Parcel>(line);
    const graft_address begin = import_of(session, parcel);
    const bool same = session.download(stream, begin + parcel.offset, kUsed) == pattern(kUsed, 6);
    session.upload(stream, begin + parcel.offset, pattern(kUsed, 7));
    session.expect(session.table.memory_release(session.device, begin), GRAFT_OK, "memory_release");
    tell(line, same);
  });
  session.open();
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(kBytes) + kInside;
  session.upload(stream, address, pattern(kUsed, 6));
  tell(borrower.line(), export_inside(session, address));
  session.require(hear<bool>(borrower.line()), "the importing process read other bytes");
  session.require(session.download(stream, address, kUsed) == pattern(kUsed, 7),
                  "what the importing process wrote did not arrive");
  session.require(borrower.end(), "the importing process failed");
}

DRIVER_CASE(owner_gone, "export: of a process that has ended is refused",
            "memory_export memory_import memory_release", kLoaded) {
  Other owner([&](int line) {
    session.open();
    tell(line, export_inside(session, session.allocate(kBytes)));
  });
  const Parcel parcel = hear<Parcel>(owner.line());
  owner.end();
  session.open();
  graft_address begin = 0;
  session.expect(session.table.memory_import(session.device, parcel.handle, &begin),
                 GRAFT_NOT_FOUND, "memory_import after the exporter ended");
  session.require(begin == 0, "a failed memory_import wrote its out_ parameter");
}
