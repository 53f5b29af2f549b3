// src/runtime/driver/bounded_wait.cpp: waits for a device that an interrupt or a limit ends.
#include "runtime/driver/bounded_wait.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/driver/library.h"

namespace graft {
namespace {

using std::chrono::nanoseconds;

constexpr double kMostSeconds = 1e9;  // what still fits in nanoseconds
constexpr nanoseconds kLongestPause = std::chrono::milliseconds(1);
constexpr nanoseconds kShortestPause = std::chrono::microseconds(10);  // a sleep takes longer

std::atomic<void (*)()> interrupt_check{nullptr};
std::atomic<void (*)(std::exception_ptr) noexcept> interrupt_postpone{nullptr};

struct Limit {
  std::atomic<int64_t> ns{0};
  std::string problem;

  Limit() {
    const char* const value = std::getenv("GRAFT_TIMEOUT");
    if (value == nullptr || *value == '\0') return;
    char* end = nullptr;
    const double seconds = std::strtod(value, &end);
    if (*end != '\0' || !std::isfinite(seconds) || seconds < 0 || seconds > kMostSeconds) {
      problem = std::string("GRAFT_TIMEOUT is '") + value +
                "', expected a number of seconds such as 30 or 0.5; 0 or unset: no limit.";
      return;
    }
    ns = static_cast<int64_t>(seconds * 1e9);
  }
};

Limit& the_limit() {
  static auto* const limit = new Limit;  // threads may wait while the process ends
  return *limit;
}

}  // namespace

void set_interrupt_check(void (*check)(), void (*postpone)(std::exception_ptr) noexcept) {
  interrupt_postpone = postpone;
  interrupt_check = check;
}

void postpone_interrupt(std::exception_ptr interrupt) noexcept {
  if (const auto postpone = interrupt_postpone.load()) postpone(std::move(interrupt));
}

nanoseconds wait_limit() noexcept {
  return nanoseconds(the_limit().ns.load(std::memory_order_relaxed));
}

void set_wait_limit(nanoseconds limit) noexcept { the_limit().ns = limit.count(); }

void check_wait_limit() {
  if (!the_limit().problem.empty()) throw Error(GRAFT_INVALID_ARGUMENT, the_limit().problem);
}

uint64_t Patience::slice_ns() const noexcept {
  const nanoseconds waited = Clock::now() - begun_;
  nanoseconds slice = waited < kFirst ? nanoseconds(kFirst) : nanoseconds(kSlice);
  if (limit_.count() != 0) slice = std::clamp(limit_ - waited, nanoseconds(0), slice);
  return static_cast<uint64_t>(slice.count());
}

bool Patience::lasts() {
  const Clock::time_point now = Clock::now();
  if (now - checked_ >= kFirst) {
    checked_ = now;
    if (const auto check = interrupt_check.load()) check();
  }
  return limit_.count() == 0 || now - begun_ < limit_;
}

void Patience::pause(nanoseconds waited) {
  const nanoseconds pause = std::min(waited / 16, kLongestPause);
  if (pause < kShortestPause) return std::this_thread::yield();
  std::this_thread::sleep_for(pause);
}

graft_status wait_for_event(const graft_driver_table& table, graft_event event,
                            const Patience& patience) noexcept {
  if (table.event_synchronize_within != nullptr) {
    return Driver::call(table.event_synchronize_within, event, patience.slice_ns());
  }
  const graft_status status = patience.poll([&] { return Driver::call(table.event_query, event); });
  if (status != GRAFT_OK || table.event_synchronize == nullptr) return status;
  return Driver::call(table.event_synchronize,
                      event);  // the mark is passed: only its error is left
}

Error too_long(const std::string& commands, const std::string& device, const std::string& note) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", std::chrono::duration<double>(wait_limit()).count());
  return {GRAFT_TIMEOUT,
          commands + " did not end within GRAFT_TIMEOUT=" + seconds + " seconds on " + device +
              ". The command still runs and keeps its memory; other streams and devices can be "
              "used. Raise GRAFT_TIMEOUT if the command needs longer, else restart the process." +
              note};
}

}  // namespace graft
