// src/kernels/launch/plan_cache.cpp: keeps the plans of a driver's libraries.
#include "kernels/launch/plan_cache.h"

namespace graft {

std::shared_ptr<const CachedPlan> PlanCache::get(
    const std::string& key, const std::function<std::shared_ptr<CachedPlan>()>& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = entries_.find(key);
  if (found != entries_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->second;
  }
  std::shared_ptr<const CachedPlan> plan = make();
  recent_.emplace_front(key, plan);
  entries_.emplace(key, recent_.begin());
  if (recent_.size() > capacity_) {
    entries_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return plan;
}

size_t PlanCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return recent_.size();
}

}  // namespace graft
