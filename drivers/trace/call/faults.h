// drivers/trace/call/faults.h: decides which calls the planted faults strike.
#ifndef GRAFT_DRIVERS_TRACE_CALL_FAULTS_H_
#define GRAFT_DRIVERS_TRACE_CALL_FAULTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "call/chance.h"
#include "settings.h"
#include "tables.h"

namespace graft::trace {

// What happens to one call. OK with drop: the driver is not called.
struct Strike {
  bool drop = false;
  bool late = false;  // with drop: the stream reports status later
  graft_status status = GRAFT_OK;
  int64_t delay_ns = 0;
};

// The planted faults. Thread-safe.
class FaultPlan {
 public:
  explicit FaultPlan(const TraceSettings& settings);

  bool any() const { return any_; }

  // Counts this call of the slot.
  Strike strike(size_t slot);

 private:
  bool any_ = false;
  std::vector<FaultRule> rules_;
  std::array<std::vector<uint32_t>, kSlotIds> of_slot_;  // places in rules_
  std::array<std::atomic<uint64_t>, kSlotIds> calls_{};
  Chance chance_;
};

// An error that a stream owes its caller: a planted one, or one that the layer's wait took.
struct HeldError {
  graft_status status = GRAFT_OK;
  uint32_t tag = 0;
  std::string text;
};

// The errors that streams owe, and those that they reported last. Thread-safe.
class HeldErrors {
 public:
  // Keeps the first error of a stream.
  void set(graft_stream stream, HeldError error);
  // The stream's error, once; status OK if it owes none.
  HeldError take(graft_stream stream);
  // The error that take() gave last, for stream_error; forget() ends that.
  HeldError taken(graft_stream stream);
  void forget(graft_stream stream);

 private:
  std::atomic<uint32_t> known_{0};  // entries of the maps
  std::mutex mutex_;
  std::unordered_map<graft_stream, HeldError> held_, taken_;  // guarded by mutex_
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_FAULTS_H_
