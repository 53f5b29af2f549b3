// src/torch/device/fallback_count.cpp: what fell back to the CPU, one counter for each operator.
#include "torch/device/fallback_count.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/driver/op_tag.h"
#include "torch/device/type.h"

namespace graft::binding {
namespace {

// What the message of a driver without a working compiler holds: the variable that names one.
constexpr const char* kNoCompiler = "GRAFT_CC";

struct Counters {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<FallbackCounter>> by_name;  // guarded by mutex
};

Counters& counters() {
  static auto* counters = new Counters;
  return *counters;
}

}  // namespace

void FallbackCounter::announce() { apply_fallback_policy(op_, &warned_); }

void FallbackCounter::add(uint64_t bytes, double seconds) {
  const std::lock_guard lock(mutex_);
  ++count_.calls;
  count_.bytes += bytes;
  count_.seconds += seconds;
}

void FallbackCounter::explain(const std::string& reason, bool told) {
  if (told) warned_ = true;
  const std::lock_guard lock(mutex_);
  if (count_.reason != reason) count_.reason = reason;
}

FallbackCount FallbackCounter::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void FallbackCounter::reset() {
  const std::lock_guard lock(mutex_);
  count_ = {};
}

FallbackCounter& fallback_counter(const std::string& op) {
  Counters& all = counters();
  const std::lock_guard lock(all.mutex);
  auto& counter = all.by_name[op];
  if (counter == nullptr) counter = std::make_unique<FallbackCounter>(op);
  return *counter;
}

FallbackCounter& fallback_counter(const c10::OperatorName& op) {
  return fallback_counter(c10::toString(op));
}

std::map<std::string, FallbackCount> fallback_counts() {
  Counters& all = counters();
  const std::lock_guard lock(all.mutex);
  std::map<std::string, FallbackCount> found;
  for (const auto& [name, counter] : all.by_name) {
    const FallbackCount count = counter->count();
    if (count.calls > 0) found[name] = count;
  }
  return found;
}

void reset_fallback_counts() {
  Counters& all = counters();
  const std::lock_guard lock(all.mutex);
  for (const auto& [name, counter] : all.by_name) counter->reset();
}

void count_fallback(const std::string& op, uint64_t bytes, double seconds) {
  FallbackCounter& counter = fallback_counter(op);
  counter.announce();
  counter.add(bytes, seconds);
}

void explain_fallback(const Error& why) {
  static std::mutex mutex;
  static auto& told = *new std::set<std::string>();
  const std::string text = why.what(), op = op_name(current_tag());
  std::string reason = why.status() == GRAFT_COMPILE_ERROR ? text : "";
  for (const char* one : {kNoCompiler, "float64 is not supported"}) {
    if (text.find(one) != std::string::npos) reason = one;
  }
  const bool compilerless = reason == kNoCompiler;
  if (!op.empty()) fallback_counter(op).explain(text, compilerless);
  if (reason.empty()) return;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(reason).second) return;
  }
  if (compilerless) {
    TORCH_WARN("No kernel can be compiled. An operator whose kernel was not built ahead of time ",
               op.empty() ? "" : "(here " + op + ") ", "runs on the CPU, counted in torch.",
               device_name(),
               ".fallback; a compiled function runs operator by operator. This warning comes once. "
               "`pip install torch-graft[compiler]` installs a compiler that Graft finds without a "
               "setting. ",
               text);
  } else {
    TORCH_WARN(text);
  }
}

}  // namespace graft::binding
