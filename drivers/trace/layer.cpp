// drivers/trace/layer.cpp: the layer in front of one driver.
#include "layer.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

namespace graft::trace {
namespace {

std::atomic<bool> in_child{false};

void note_fork() { in_child = true; }

struct LastText {
  const TraceLayer* owner = nullptr;
  std::string text;
};
thread_local LastText last;

// The thread's last failure in a driver.
struct OwnFailure {
  const TraceLayer* layer = nullptr;
  std::string text;
  uint64_t count = 0;  // of all threads' failures, when it was looked at
};
thread_local OwnFailure own;

constexpr size_t kFailures = 16;

}  // namespace

TraceLayer::TraceLayer(const TraceSettings& given, const graft_driver_table& driver)
    : settings(given),
      name(driver.name == nullptr ? "" : driver.name),
      faults(given),
      sampling(given) {
  behind<graft_driver_table>() = driver;
  static const int watched = pthread_atfork(nullptr, nullptr, note_fork);
  (void)watched;
}

bool TraceLayer::forked() { return in_child.load(std::memory_order_relaxed); }

const std::string* TraceLayer::last_text() const {
  return last.owner == this && !last.text.empty() ? &last.text : nullptr;
}

void TraceLayer::keep_text(std::string text) const { last = {this, std::move(text)}; }

std::string TraceLayer::driver_text() const {
  thread_local std::array<char, 16384> text;
  text[0] = '\0';
  const auto ask = driver().last_message;
  if (ask == nullptr || ask(text.data(), text.size()) != GRAFT_OK) return "";
  text.back() = '\0';
  return text.data();
}

bool TraceLayer::cuts_texts() const {
  constexpr size_t kCapacity = 8;
  std::array<char, 64> room;
  room.fill('\x5a');
  if (driver().last_message(room.data(), kCapacity) != GRAFT_OK) return true;
  const auto* const end = room.begin() + kCapacity;
  return std::find(room.cbegin(), end, '\0') != end &&
         std::all_of(end, room.cend(), [](char one) { return one == '\x5a'; });
}

void TraceLayer::note_failure(const std::string& text) {
  const std::lock_guard lock(failures_mutex_);
  const uint64_t count = failure_count_++;
  if (failures_.size() < kFailures) failures_.resize(kFailures);
  failures_[count % kFailures] = {calling_thread(), text};
  own = {this, text, count + 1};
}

void TraceLayer::forget_failure() const {
  if (own.layer == this) own.layer = nullptr;
}

bool TraceLayer::has_foreign_text() {
  if (own.layer != this || own.count == failure_count_) return false;
  own.count = failure_count_;
  const std::string now = driver_text();
  if (now == own.text || now.empty()) return false;
  const std::lock_guard lock(failures_mutex_);
  const uint64_t thread = calling_thread();
  return std::any_of(failures_.begin(), failures_.end(), [&](const Failure& one) {
    return one.thread != 0 && one.thread != thread && one.text == now;
  });
}

void TraceLayer::report_suspicions() {
  const std::lock_guard lock(mutex);
  for (const auto& [id, stream] : ledger.stream_ids) {
    for (const Suspicion& one : std::exchange(stream->suspicions, {})) {
      findings.add(one.slot, {Culprit::kDriver, "early", one.call, one.text,
                              "Set the mark behind the stream's earlier commands."});
    }
  }
}

void TraceLayer::finish() {
  if (forked() || finished_.exchange(true)) return;
  if (settings.rules) report_suspicions();
  if (settings.rules && settings.summary) findings.summarize(calls);
  log.close();
}

}  // namespace graft::trace
