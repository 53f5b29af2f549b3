// drivers/host/stream/fault.cpp: faults that a test plants through GRAFT_HOST_FAULTS.
#include "fault.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <string>

#include "settings.h"
#include "simulation/simulation.h"

namespace graft::host {

std::atomic<uint32_t> detours{0};

namespace {

// The last two are written "launch:hang" and "copy:hang".
constexpr const char* kNames[] = {"alloc",  "launch",     "copy",        "lost",     "compile",
                                  "stream", "collective", "launch:hang", "copy:hang"};
constexpr char kHang[] = "hang";
static_assert(sizeof kNames / sizeof *kNames == size_t(Fault::kCount));

struct Plan {
  double chance = 0;   // of each call, when above 0
  uint64_t which = 0;  // the call that fails, counted from 1, when above 0
  std::atomic<uint64_t> calls{0};
};

struct Plans {
  Plan plans[size_t(Fault::kCount)];
  bool any = false, drop = false;
  std::mutex mutex;
  std::mt19937_64 random{20260101};  // guarded by mutex

  Plans() {
    if (!settings().target.empty()) any = drop = true;
    std::istringstream list(settings().faults);
    for (std::string item; std::getline(list, item, ',');) plant(item);
  }

  void plant(const std::string& item) {
    size_t colon = item.find(':');
    if (colon == std::string::npos) return;
    std::string name = item.substr(0, colon), value = item.substr(colon + 1);
    if (name == "launch" && value == "drop") any = drop = true;
    if (value.starts_with(kHang)) {  // hang or, for the third command, hang3
      name += std::string(":") + kHang;
      value = value.substr(sizeof kHang - 1);
      if (value.empty()) value = "1";
    }
    for (size_t i = 0; i < size_t(Fault::kCount); ++i) {
      double number = name == kNames[i] ? std::strtod(value.c_str(), nullptr) : 0;
      if (number <= 0) continue;
      (number < 1 ? plans[i].chance : number) = number;
      if (number >= 1) plans[i].which = uint64_t(number);
      any = true;
    }
  }
};

Plans& plans() {
  static Plans* instance = new Plans;
  return *instance;
}

void in_child() { detours.fetch_or(kDetourForked); }

}  // namespace

bool planted_strikes(Fault kind) {
  Plans& all = plans();
  Plan& plan = all.plans[size_t(kind)];
  if (plan.which != 0) return plan.calls.fetch_add(1) + 1 == plan.which;
  if (plan.chance == 0) return false;
  std::lock_guard lock(all.mutex);
  return std::uniform_real_distribution<>()(all.random) < plan.chance;
}

bool planted_drop() { return plans().drop; }

void watch_detours() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (settings().mode == Mode::kAsync) detours.fetch_or(kDetourAsync);
    if (plans().any) detours.fetch_or(kDetourFaults);
    if (simulation().on) detours.fetch_or(kDetourSimulated);
    pthread_atfork(nullptr, nullptr, in_child);
  });
}

}  // namespace graft::host
