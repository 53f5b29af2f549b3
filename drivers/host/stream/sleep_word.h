// drivers/host/stream/sleep_word.h: a number that threads sleep on, for some time.
#ifndef GRAFT_DRIVERS_HOST_STREAM_SLEEP_WORD_H_
#define GRAFT_DRIVERS_HOST_STREAM_SLEEP_WORD_H_

#include <atomic>
#include <cstdint>
#include <ctime>

namespace graft::host {

// How long a wait may take in all. The clock is read at its first sleep alone.
class SleepLimit {
 public:
  static constexpr uint64_t kForever = UINT64_MAX;

  explicit SleepLimit(uint64_t ns = kForever) : ns_(ns) {}

 private:
  friend class SleepWord;
  const timespec* end();  // null: for ever

  uint64_t ns_;
  bool known_ = false;
  timespec end_{};
};

// One thread sets it, any number wait. Not for memory that processes share.
class SleepWord {
 public:
  uint32_t load(std::memory_order order) const { return value_.load(order); }
  void store(uint32_t value, std::memory_order order) { value_.store(value, order); }

  // Sets it and wakes those that sleep.
  void set(uint32_t value) {
    value_.store(value);
    if (sleepers_.load() != 0) wake();
  }

  // True once the number is not old any more, false when the limit is over first.
  bool await_change(uint32_t old, SleepLimit& limit);

 private:
  void wake();

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_SLEEP_WORD_H_
