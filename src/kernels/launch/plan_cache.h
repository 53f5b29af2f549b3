// src/kernels/launch/plan_cache.h: keeps the plans of a driver's libraries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "graft/extensions.h"
#include "kernels/launch/recent.h"
#include "runtime/driver/library.h"

namespace graft {

// A plan and what it needs. Destroyed through its driver when the last user lets go.
struct CachedPlan {
  CachedPlan() = default;
  CachedPlan(const CachedPlan&) = delete;
  CachedPlan& operator=(const CachedPlan&) = delete;

  graft_plan plan = nullptr;  // null: the library does not support the descriptor
  uint64_t workspace_bytes = 0;
  graft_status (*execute)(graft_stream, graft_plan, const graft_execution*) = nullptr;
  graft_status (*destroy)(graft_plan) = nullptr;
  ~CachedPlan() {
    if (plan != nullptr && destroy != nullptr) Driver::call(destroy, plan);
  }
};

// Least recently used plans by descriptor: keys are compared whole, so two descriptors never
// share a plan. At most capacity entries; an evicted plan lives until its last execution returned.
// Thread-safe: one lock, held while a plan is made so that it is made once.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // The plan of key, made by make at the first call; what make throws passes through uncached.
  std::shared_ptr<const CachedPlan> get(const std::string& key,
                                        const std::function<std::shared_ptr<CachedPlan>()>& make);

  size_t size() const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  Recent<std::string, std::shared_ptr<const CachedPlan>> plans_;  // guarded by mutex_
};

}  // namespace graft
