// drivers/trace/objects/guard.h: memory that a slot may read during its call only.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_

#include <cstddef>
#include <cstdint>

#include "call/call.h"

namespace graft::trace {

// Pages that are closed once a call has returned. A driver that reads one later is found: the page
// opens again, the read goes on, and the next call of any slot reports the finding.
class GuardedPage {
 public:
  // A fresh page for a call of slot, whose name is static; data() is null if there is none.
  explicit GuardedPage(const char* slot);
  ~GuardedPage();
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  static constexpr size_t kBytes = 4096;
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
};

// Reports reads of closed pages since the last call.
void report_late_reads(TraceCall& call);

// A copy of launch and its arguments that call keeps, or launch if there is no room.
const graft_launch* guarded_launch(TraceCall& call, const graft_launch* launch);

// Likewise of bytes at data.
const void* guarded_bytes(TraceCall& call, const void* data, size_t bytes);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_
