// drivers/host/stream/sleep_word.cpp: a number that threads sleep on, for some time.
#include "sleep_word.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "kernel/processor.h"

namespace graft::host {
namespace {

// Before a sleep, which costs more than what most waits take.
constexpr int kPauses = 12, kYields = 4;
constexpr uint64_t kSecond = 1000000000;

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* end) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG,
                 value, end, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

const timespec* SleepLimit::end() {
  if (ns_ == kForever) return nullptr;
  if (!known_) {
    clock_gettime(CLOCK_MONOTONIC, &end_);
    const uint64_t ns = uint64_t(end_.tv_nsec) + ns_ % kSecond;
    end_.tv_sec += time_t(ns_ / kSecond + ns / kSecond);
    end_.tv_nsec = long(ns % kSecond);
    known_ = true;
  }
  return &end_;
}

bool SleepWord::await_change(uint32_t old, SleepLimit& limit) {
  for (int spin = 0; spin < kPauses + kYields; ++spin) {
    if (value_.load(std::memory_order_acquire) != old) return true;
    if (limit.ns_ == 0) return false;
    spin < kPauses ? spin_pause() : void(sched_yield());
  }
  sleepers_.fetch_add(1);
  bool over = false;
  while (value_.load() == old && !over) {
    over = futex(&value_, FUTEX_WAIT_BITSET, old, limit.end()) != 0 && errno == ETIMEDOUT;
  }
  sleepers_.fetch_sub(1);
  return value_.load(std::memory_order_acquire) != old;
}

void SleepWord::wake() { futex(&value_, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace graft::host
