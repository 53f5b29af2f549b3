// drivers/trace/call/chance.h: what happens to a share of the calls.
#ifndef GRAFT_DRIVERS_TRACE_CALL_CHANCE_H_
#define GRAFT_DRIVERS_TRACE_CALL_CHANCE_H_

#include <cstdint>
#include <mutex>
#include <random>

namespace graft::trace {

// One seed gives the same draws in the same order. Thread-safe.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}

  // Whether an event that has this share happens now.
  bool draw(double share) {
    if (share <= 0) return false;
    if (share >= 1) return true;
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<>()(random_) < share;
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_CHANCE_H_
