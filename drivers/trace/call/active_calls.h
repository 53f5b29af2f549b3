// drivers/trace/call/active_calls.h: which thread is inside which slot of a driver.
#ifndef GRAFT_DRIVERS_TRACE_CALL_ACTIVE_CALLS_H_
#define GRAFT_DRIVERS_TRACE_CALL_ACTIVE_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "call/call.h"

namespace graft::trace {

// Counts up while objects/watch.h watches: a clock that stands still if the machine does.
extern std::atomic<uint64_t> ticks;
constexpr uint64_t kTickNs = 25'000'000;

// What other threads see of a thread's call. Fields change one by one: a reader checks layer and
// began before and after.
struct ActiveCall {
  std::atomic<bool> taken{false};           // by a thread
  std::atomic<uint64_t> thread{0};          // its number in the system
  std::atomic<TraceLayer*> layer{nullptr};  // null: the thread is in no driver
  std::atomic<const TableFacts*> table{nullptr};
  std::atomic<size_t> slot{0};
  std::atomic<uint64_t> began{0};           // tick
  std::atomic<bool> prompt{false};          // nothing keeps the slot from returning
  std::atomic<uint64_t> awaited_stream{0};  // id; 0: none
  std::atomic<uint32_t> awaited_ticket{0};  // that the slot may wait for
  std::atomic<bool> reported{false};
};

// The calling thread is inside the driver as long as this lives.
class InsideDriver {
 public:
  explicit InsideDriver(TraceCall& call);
  ~InsideDriver();
  InsideDriver(const InsideDriver&) = delete;
  InsideDriver& operator=(const InsideDriver&) = delete;

 private:
  TraceCall& call_;
  ActiveCall* active_;
  TraceLayer* around_ = nullptr;  // of the call that this one is made in
};

// Calls f for each call that is inside a driver.
void each_active_call(const std::function<void(ActiveCall&)>& f);

// If the process gets a fatal signal inside a driver, a finding names the slot; the signal then
// does what it would have done. code: of a driver, whose own handlers are left alone.
void watch_crashes(const void* code);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_ACTIVE_CALLS_H_
