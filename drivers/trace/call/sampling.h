// drivers/trace/call/sampling.h: decides which calls get a closer look.
#ifndef GRAFT_DRIVERS_TRACE_CALL_SAMPLING_H_
#define GRAFT_DRIVERS_TRACE_CALL_SAMPLING_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "call/chance.h"
#include "settings.h"
#include "tables.h"

namespace graft::trace {

// A closer look costs a wait or two system calls: the first calls of each kind get one, of the
// others a share. Thread-safe.
class Sampling {
 public:
  explicit Sampling(const TraceSettings& settings);

  // Whether this is one of the first two of its kind. kind: any number that they share.
  bool is_new(uint64_t kind);

  // Whether what a command writes is read back. idle: nothing is queued before it, so that a wait
  // is short.
  bool verifies(uint64_t kind, bool idle);

  // Whether what a call of the slot gets by pointer is closed when the call has returned.
  bool guards(size_t slot);

 private:
  const double share_;
  const bool first_ones_;
  std::array<std::atomic<uint32_t>, kSlotIds> calls_{};
  Chance chance_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, uint32_t> kinds_;  // guarded by mutex_: commands of each
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_SAMPLING_H_
