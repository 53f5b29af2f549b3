// src/torch/distributed/group_engines.h: the engines of a group, and which of them all its ranks
// use.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "runtime/platform/device.h"
#include "torch/distributed/failure_report.h"
#include "torch/distributed/group_options.h"
#include "torch/distributed/native_engine.h"
#include "torch/distributed/staged_engine.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// One rank's staged engine and, where all ranks have the same collectives of their drivers, its
// native one. choose comes from the thread that calls the group's collectives.
class GroupEngines {
 public:
  // store: the group's own. host: a backend for CPU tensors of the same ranks, used by these
  // engines alone. options: read at each call, because a group's timeout may change.
  GroupEngines(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               c10::intrusive_ptr<c10d::Backend> host, c10::intrusive_ptr<GroupOptions> options);

  // The engine of collectives on a device, alive as long as this. The first call finds out, with
  // all ranks, what they have in common, and waits for them. Throws RuntimeError where they do not
  // come, where the driver lacks what the options demand, and, in later calls, for another device;
  // Error where the driver's library fails.
  CollectiveEngine& choose(c10::Device device);

  // The engine of what the driver's library does not take, alive as long as this.
  StagedEngine& staged() const { return *staged_; }

  // What is under way and what comes later fails. Any thread.
  void abort();

  // Waits for what is under way in the native engine; returns at once after abort(). Throws Error
  // where it failed and nobody was told.
  void finish();

  // Whether this rank has reported a failure. Any thread.
  bool failed() const { return roll_call_->reported().has_value(); }

 private:
  std::string offer(OpenDevice& device) const;
  void meet();
  bool agree(OpenDevice& device);
  void join(Device& device);
  size_t ranks() const { return static_cast<size_t>(size_); }

  const int rank_;
  const int size_;
  const c10::intrusive_ptr<GroupOptions> options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::shared_ptr<FailureReport> roll_call_;
  const std::shared_ptr<StagedEngine> staged_;
  std::mutex aborting_;  // orders abort() and the making of native_
  bool aborted_ = false;
  std::shared_ptr<NativeEngine> native_;
  bool agreed_ = false;
};

}  // namespace graft::binding
