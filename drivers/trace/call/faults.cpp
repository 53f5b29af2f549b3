// drivers/trace/call/faults.cpp: decides which calls the planted faults strike.
#include "call/faults.h"

#include <utility>

namespace graft::trace {

FaultPlan::FaultPlan(const TraceSettings& settings)
    : any_(!settings.faults.empty()), rules_(settings.faults), chance_(settings.seed) {
  for (uint32_t i = 0; i < rules_.size(); ++i) {
    for (const size_t slot : rules_[i].slots) of_slot_.at(slot).push_back(i);
  }
}

Strike FaultPlan::strike(size_t slot) {
  Strike all;
  if (of_slot_.at(slot).empty()) return all;
  const uint64_t call = calls_.at(slot).fetch_add(1) + 1;
  for (const uint32_t i : of_slot_.at(slot)) {
    const FaultRule& rule = rules_[i];
    const bool strikes = rule.call == 0 ? chance_.draw(rule.share)
                                        : call == rule.call || (rule.onward && call > rule.call);
    if (!strikes) continue;
    if (rule.kind == FaultKind::kDelay) {
      all.delay_ns += rule.nanoseconds;
      continue;
    }
    all.drop = true;
    all.late = rule.kind == FaultKind::kLate;
    all.status = rule.kind == FaultKind::kDrop ? GRAFT_OK : rule.status;
  }
  return all;
}

void HeldErrors::set(graft_stream stream, HeldError error) {
  const std::lock_guard lock(mutex_);
  held_.emplace(stream, std::move(error));
  known_ = static_cast<uint32_t>(held_.size() + taken_.size());
}

HeldError HeldErrors::take(graft_stream stream) {
  if (known_ == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(stream);
  if (found == held_.end()) return {};
  HeldError error = std::move(found->second);
  held_.erase(found);
  taken_[stream] = error;
  return error;
}

HeldError HeldErrors::taken(graft_stream stream) {
  if (known_ == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(stream);
  return found == taken_.end() ? HeldError{} : found->second;
}

void HeldErrors::forget(graft_stream stream) {
  if (known_ == 0) return;
  const std::lock_guard lock(mutex_);
  taken_.erase(stream);
  held_.erase(stream);
  known_ = static_cast<uint32_t>(held_.size() + taken_.size());
}

}  // namespace graft::trace
