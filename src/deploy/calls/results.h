// src/deploy/calls/results.h: what a queued call gives.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "deploy/calls/device_array.h"
#include "deploy/calls/order.h"

namespace graft::deploy {

// In device memory until the host asks for it. Thread-safe. Outlives its model.
class QueuedResults {
 public:
  QueuedResults(std::shared_ptr<QueuedCall> call, std::vector<DeviceArray> arrays)
      : call_(std::move(call)), arrays_(std::move(arrays)), copies_(arrays_.size()) {}

  size_t size() const { return arrays_.size(); }
  const DeviceArray& on_device(size_t index) const { return arrays_[index]; }

  // A copy in host memory, row-major, made at the first call, which waits. Throws as
  // QueuedCall::download does. REQUIRES: index < size().
  const HostResult& on_host(size_t index) {
    const std::lock_guard lock(mutex_);
    std::optional<HostResult>& copy = copies_[index];
    if (!copy) copy = call_->download(arrays_[index].view());
    return *copy;
  }

 private:
  const std::shared_ptr<QueuedCall> call_;
  const std::vector<DeviceArray> arrays_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::optional<HostResult>> copies_;
};

}  // namespace graft::deploy
