// drivers/host/collectives/shared_segment.cpp: memory that the ranks of a group share.
#include "shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace graft::host {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAllChannels = 8 << 20;  // bytes that the channels share while ranks are few

uint64_t round_up(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::string system_text(int code) { return std::strerror(code); }

}  // namespace

void SharedSegment::lay_out() {
  const uint64_t pairs = uint64_t(size_) * size_;
  channel_bytes_ =
      std::clamp<uint64_t>(kAllChannels / pairs / kPage * kPage, kPage, uint64_t{256} << 10);
  members_ = round_up(sizeof(SegmentHeader));
  channels_ = members_ + round_up(size_ * sizeof(Member));
  slots_ = channels_ + round_up(pairs * sizeof(Channel));
  channel_slots_ = slots_ + size_ * 2 * kSlotBytes;
  bytes_ = channel_slots_ + pairs * 2 * channel_bytes_;
}

SharedSegment::SharedSegment(std::string name, uint32_t size)
    : name_(std::move(name)), size_(size) {
  lay_out();
  const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw GroupError(GRAFT_IO, "shm_open " + name_ + ": " + system_text(errno));
  // Only grows the file, and takes the memory now: a full file system is an error, not a SIGBUS.
  int code = 0;
  do {
    code = posix_fallocate(file, 0, off_t(bytes_));
  } while (code == EINTR);
  void* base = MAP_FAILED;
  if (code == 0) {
    base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) code = errno;
  }
  close(file);
  if (code != 0) {
    unlink();
    throw GroupError(GRAFT_OUT_OF_MEMORY, "no " + std::to_string(bytes_) +
                                              " bytes of shared memory for the group: " +
                                              system_text(code) + " (is /dev/shm full?)");
  }
  base_ = static_cast<char*>(base);
  // A forked child is no rank of the group.
  madvise(base, bytes_, MADV_DONTFORK);
}

SharedSegment::~SharedSegment() { munmap(base_, bytes_); }

void SharedSegment::unlink() noexcept { shm_unlink(name_.c_str()); }

}  // namespace graft::host
