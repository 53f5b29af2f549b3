// src/runtime/driver/bounded_wait.h: waits for a device that an interrupt or a limit ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>

#include "graft/driver.h"
#include "runtime/driver/error.h"
#include "runtime/driver/export.h"

namespace graft {

// Registers what a wait of more than 20 ms calls about every 50 ms, on the waiting thread and with
// no lock of the runtime held. What check throws ends the wait and goes to who waited; where a wait
// may not throw, postpone gets it. Either may be null. Any thread, before the first wait.
GRAFT_EXPORT void set_interrupt_check(void (*check)(),
                                      void (*postpone)(std::exception_ptr) noexcept = nullptr);
void postpone_interrupt(std::exception_ptr interrupt) noexcept;

// The longest wait: GRAFT_TIMEOUT, in seconds, read once; 0: there is no limit. Cheap.
GRAFT_EXPORT std::chrono::nanoseconds wait_limit() noexcept;
// Replaces it, for programs that set it themselves.
GRAFT_EXPORT void set_wait_limit(std::chrono::nanoseconds limit) noexcept;
// Throws Error INVALID_ARGUMENT where GRAFT_TIMEOUT is no number of seconds (there is no limit
// then).
GRAFT_EXPORT void check_wait_limit();

// The Error TIMEOUT of a wait that the limit ended: what it waited for, on which device, and a note
// that says where the user called that, or "".
Error too_long(const std::string& commands, const std::string& device, const std::string& note);

// One wait, cut into slices, each of which is a call of a slot. Belongs to the waiting thread.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kFirst{20};  // before the first look for interrupts
  static constexpr std::chrono::milliseconds kSlice{50};

  // The wait began some time ago and may take limit in all, wait_limit() by default; 0: for ever.
  explicit Patience(std::chrono::nanoseconds waited = {},
                    std::chrono::nanoseconds limit = wait_limit())
      : begun_(Clock::now() - waited), limit_(limit) {}

  // How long a first slice may take that no Patience was made for.
  static uint64_t first_slice_ns() noexcept {
    const std::chrono::nanoseconds limit = wait_limit();
    return static_cast<uint64_t>((limit.count() == 0
                                      ? std::chrono::nanoseconds(kFirst)
                                      : std::min(limit, std::chrono::nanoseconds(kFirst)))
                                     .count());
  }

  // How long the next slice may take.
  uint64_t slice_ns() const noexcept;

  // After a slice in vain: whether to go on. Calls the interrupt check, which may throw.
  bool lasts();

  // One slice of calls of query with growing pauses: its first status other than BUSY, or BUSY.
  template <class Query>
  graft_status poll(Query&& query) const {
    const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(slice_ns());
    for (;;) {
      const graft_status status = query();
      if (status != GRAFT_BUSY) return status;
      const Clock::time_point now = Clock::now();
      if (now >= end) return GRAFT_BUSY;
      pause(now - begun_);
    }
  }

 private:
  static void pause(std::chrono::nanoseconds waited);

  Clock::time_point begun_;
  Clock::time_point checked_{};  // when the interrupt check was called last
  std::chrono::nanoseconds limit_;
};

// One slice of a wait for an event: BUSY if its mark is not passed by then, else what
// event_synchronize returns, where the driver has it.
graft_status wait_for_event(const graft_driver_table& table, graft_event event,
                            const Patience& patience) noexcept;

}  // namespace graft
