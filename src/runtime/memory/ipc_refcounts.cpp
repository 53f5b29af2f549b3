// src/runtime/memory/ipc_refcounts.cpp: who else uses the memory of a process, kept where all of
// them see it.
#include "runtime/memory/ipc_refcounts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "runtime/driver/error.h"

namespace graft {
namespace {

constexpr char kFileName[] = "graft-ledger";

struct Row {
  std::atomic<uint64_t> ticket;   // 0: nobody's
  std::atomic<int64_t> messages;  // unread; below 0 when a message was read twice
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

[[noreturn]] void fail(const std::string& what) {
  throw Error(GRAFT_IO, "Memory cannot be shared between processes: " + what + ": " +
                            std::strerror(errno) + ".");
}

uint64_t random_number() {
  std::random_device source;
  return (uint64_t{source()} << 32 | source()) | 1;
}

}  // namespace

struct IpcRefcounts::Page {
  uint64_t identity;
  uint64_t unused[7];
  Row rows[kRows];
};

IpcRefcounts::IpcRefcounts() {
  file_ = ::memfd_create(kFileName, MFD_CLOEXEC);
  if (file_ < 0) fail("memfd_create");
  if (::ftruncate(file_, sizeof(Page)) != 0) {
    ::close(file_);
    fail("ftruncate");
  }
  map();
  page_->identity = random_number();
  place_ = {static_cast<int32_t>(::getpid()), file_, page_->identity};
}

IpcRefcounts::IpcRefcounts(const Place& place) : place_(place) {
  const std::string process = std::to_string(place.process);
  const Error gone(GRAFT_NOT_FOUND,
                   "Process " + process +
                       " has ended before a tensor that it sent was received. Keep a process that "
                       "sends tensors of a device alive until every receiver has them.");
  const std::string path = "/proc/" + process + "/fd/" + std::to_string(place.file);
  char name[64] = "";
  // A later process may have the number: what it has under the descriptor is looked at first.
  if (::readlink(path.c_str(), name, sizeof name - 1) < 0) {
    if (errno != ENOENT) fail(path);
    throw Error(gone);
  }
  if (std::string(name).find(kFileName) == std::string::npos) throw Error(gone);
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) {
    if (errno != ENOENT) fail(path);
    throw Error(gone);
  }
  struct stat found = {};
  const bool whole = ::fstat(file_, &found) == 0 && found.st_size == off_t{sizeof(Page)};
  if (whole) map();
  if (!whole || page_->identity != place.identity) {
    if (whole) ::munmap(page_, sizeof(Page));
    ::close(file_);
    throw Error(gone);
  }
}

IpcRefcounts::~IpcRefcounts() {
  ::munmap(page_, sizeof(Page));
  ::close(file_);
}

void IpcRefcounts::map() {
  void* page = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (page == MAP_FAILED) {
    ::close(file_);
    fail("mmap");
  }
  page_ = static_cast<Page*>(page);
}

bool IpcRefcounts::lock(uint32_t row, int kind, bool wait) noexcept {
  struct flock wanted = {};
  wanted.l_type = static_cast<short>(kind);
  wanted.l_whence = SEEK_SET;
  wanted.l_start = row;
  wanted.l_len = 1;
  int result = 0;
  do {
    result = ::fcntl(file_, wait ? F_SETLKW : F_SETLK, &wanted);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void IpcRefcounts::open(uint32_t row, uint64_t ticket) {
  page_->rows[row].messages.store(0);
  page_->rows[row].ticket.store(ticket);
}

bool IpcRefcounts::close(uint32_t row) {
  if (page_->rows[row].messages.load() > 0 || !lock(row, F_WRLCK, false)) return false;
  // Nobody holds it now; the last one who did may have sent it on.
  const bool unused = page_->rows[row].messages.load() <= 0;
  if (unused) page_->rows[row].ticket.store(0);
  lock(row, F_UNLCK, false);
  return unused;
}

void IpcRefcounts::add_message(uint32_t row) { page_->rows[row].messages.fetch_add(1); }

bool IpcRefcounts::take_message(uint32_t row, uint64_t ticket) {
  if (row >= kRows || page_->rows[row].ticket.load() != ticket) return false;
  page_->rows[row].messages.fetch_sub(1);
  return true;
}

bool IpcRefcounts::hold(uint32_t row, uint64_t ticket) {
  if (row >= kRows) return false;
  if (!lock(row, F_RDLCK, true)) fail("fcntl lock");  // waits for close() at most
  if (take_message(row, ticket)) return true;
  let_go(row);
  return false;
}

void IpcRefcounts::let_go(uint32_t row) noexcept { lock(row, F_UNLCK, false); }

}  // namespace graft
