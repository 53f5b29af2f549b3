// src/runtime/wait/checks.cpp: what a stream's commands depend on beyond the stream.
#include "runtime/wait/checks.h"

#include <algorithm>
#include <exception>

namespace graft {

void WaitChecks::add(const void* owner, Question question) {
  const std::lock_guard lock(mutex_);
  const auto same = [owner](const Entry& entry) { return entry.first == owner; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) {
    found->second = std::move(question);
  } else {
    entries_.emplace_back(owner, std::move(question));
  }
  any_.store(true, std::memory_order_release);
}

std::vector<WaitChecks::Entry> WaitChecks::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

void WaitChecks::take_over(const WaitChecks& other) {
  if (this == &other || !other.any_.load(std::memory_order_acquire)) return;
  for (Entry& entry : other.entries()) add(entry.first, std::move(entry.second));
}

void WaitChecks::ask_all() {
  std::vector<Entry> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(entries_);
    any_.store(false, std::memory_order_release);
  }
  std::exception_ptr first;
  for (Entry& entry : asked) {
    bool again = false;
    try {
      again = entry.second();
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
    if (again) add(entry.first, std::move(entry.second));
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace graft
