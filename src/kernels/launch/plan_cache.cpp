// src/kernels/launch/plan_cache.cpp: keeps the plans of a driver's libraries.
#include "kernels/launch/plan_cache.h"

namespace graft {

std::shared_ptr<const CachedPlan> PlanCache::get(
    const std::string& key, const std::function<std::shared_ptr<CachedPlan>()>& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto* known = plans_.find(key)) return *known;
  std::shared_ptr<const CachedPlan> plan = plans_.add(key, make());
  if (plans_.size() > capacity_) plans_.drop_oldest();
  return plan;
}

size_t PlanCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return plans_.size();
}

}  // namespace graft
