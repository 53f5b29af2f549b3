// src/runtime/stream/command_trace.h: what streams did, command by command, for a profiler.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

class Stream;

enum class TracedKind : uint8_t { kLaunch, kCopy, kFill, kReplay, kWait };

// A call of a stream and what the device did for it. Times are nanoseconds since the Unix epoch by
// the host's clock, 0 where there is none: a wait has no work of the device, a second kernel of one
// call and the commands of a replay have no call of their own.
struct TracedCommand {
  TracedKind kind = TracedKind::kLaunch;
  graft_copy_kind copy_kind = GRAFT_DEVICE_TO_DEVICE;
  uint32_t tag = 0;  // op_name gives the op
  int device = 0;
  int64_t stream = 0;
  uint64_t bytes = 0;             // of copies and fills
  uint64_t correlation = 0;       // what the calling thread had pushed last, 0 for nothing
  uint64_t user_correlation = 0;  // likewise
  int32_t thread = 0;             // the kernel's number of the calling thread
  int64_t called_ns = 0, returned_ns = 0;
  int64_t start_ns = 0, end_ns = 0;
  std::string name;  // of the kernel, by the driver or by name_kernel; may be empty
};

// From now on streams keep what they do. The device's times come from the driver's graft.profiler,
// or from timed events around each command, or are missing where the driver has neither. Commands
// that a stream records for a graph are not traced; their replays are. Thread-safe.
GRAFT_EXPORT void trace_commands();

// Waits for what was traced, ends it, and gives it in the order of the calls. Late errors stay for
// their streams. Never throws but for want of memory.
GRAFT_EXPORT std::vector<TracedCommand> take_traced_commands();

// What the calling thread's commands belong to, innermost last; any number, 0 excepted.
enum class Correlation : uint8_t { kOp, kUser };
GRAFT_EXPORT void push_correlation(Correlation kind, uint64_t number);
GRAFT_EXPORT void pop_correlation(Correlation kind) noexcept;

// The name that traces give launches of a kernel. Thread-safe.
GRAFT_EXPORT void name_kernel(graft_kernel kernel, std::string_view name);

namespace command_trace_state {
GRAFT_EXPORT extern std::atomic<bool> on;
}

inline bool commands_are_traced() {
  return command_trace_state::on.load(std::memory_order_relaxed);
}

// A stream's call from here to the end of the scope. Costs one load while nothing is traced, and
// never throws. Made before the stream's lock is taken.
class GRAFT_EXPORT TracedCall {
 public:
  struct What {
    TracedKind kind = TracedKind::kLaunch;
    uint64_t bytes = 0;
    graft_copy_kind copy_kind = GRAFT_DEVICE_TO_DEVICE;
    graft_kernel kernel = nullptr;
    bool on = true;              // false: in no trace
    const char* name = nullptr;  // of the work, static; null: the kernel's
  };

  TracedCall(Stream& stream, uint32_t tag, const What& what) : tag_(tag) {
    if (commands_are_traced()) [[unlikely]]
      begin(stream, what);
  }
  ~TracedCall() {
    if (begun_ != nullptr) [[unlikely]]
      end();
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  // For the command: the tag that was given, or one by which the driver tells what it did.
  uint32_t tag() const { return tag_; }

 private:
  struct Begun;
  void begin(Stream& stream, const What& what) noexcept;
  void end() noexcept;

  uint32_t tag_;
  Begun* begun_ = nullptr;  // owned
};

}  // namespace graft
