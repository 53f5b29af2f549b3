// src/codegen/cache/compile_progress.cpp: tells a user who waits that kernels are being compiled.
#include "codegen/cache/compile_progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace graft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{2};

bool wanted() {
  const char* choice = std::getenv("GRAFT_PROGRESS");
  if (choice != nullptr && *choice != '\0') return std::string_view(choice) != "0";
  return isatty(STDERR_FILENO) == 1;
}

struct Burst {
  std::mutex mutex;
  int done = 0;
  int waiting = 0;
  Clock::time_point begin, last, shown;
};

Burst& burst() {
  static auto* the_burst = new Burst();  // kernels may be asked for while the process ends
  return *the_burst;
}

// REQUIRES: the burst's mutex is held.
void show(Burst& now, const std::string& device) {
  static const bool shows = wanted();
  now.last = Clock::now();
  if (!shows || now.last - now.begin < kPatience || now.last - now.shown < kPatience) return;
  now.shown = now.last;
  std::fprintf(stderr, "graft: compiling kernels for %s: %d done, %d waiting\n", device.c_str(),
               now.done, now.waiting);
}

}  // namespace

CompileProgress::CompileProgress(const std::string& device) : device_(device) {
  Burst& now = burst();
  const std::lock_guard lock(now.mutex);
  if (now.waiting == 0 && Clock::now() - now.last > kPatience) {
    now.done = 0;
    now.begin = Clock::now();
  }
  ++now.waiting;
  show(now, device_);
}

CompileProgress::~CompileProgress() {
  Burst& now = burst();
  const std::lock_guard lock(now.mutex);
  --now.waiting;
  ++now.done;
  show(now, device_);
}

}  // namespace graft
