// src/deploy/calls/queue.h: commands and calls of models in the order that a program gives them.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "deploy/calls/device_array.h"
#include "deploy/calls/order.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// Commands of one queue run one after another; those of two queues in any order, unless one waits.
// Thread-safe. A late failure is thrown once by synchronize, query or read; of several the first.
class Queue {
 public:
  explicit Queue(Device& device) : device_(device), stream_(device.stream_from_pool(0)) {}
  ~Queue();  // waits
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device& device() const { return device_; }
  Stream& stream() const { return stream_; }

  // Memory for a row-major tensor, for later commands. Throws what Allocator::allocate throws.
  DeviceArray allocate(const TensorView& view) const { return DeviceArray(device_, stream_, view); }

  // Queues a copy of host memory of any strides, read during the call. Throws Error
  // INVALID_ARGUMENT for another dtype, other sizes or an array of another device.
  void write(const DeviceArray& to, const TensorView& from);

  // Queues a copy to row-major host memory, which stays as long as the command is not done. Throws
  // as write does.
  void read(const DeviceArray& from, const TensorView& to);

  // Later commands run after those that the other queue has by now. Throws Error INVALID_ARGUMENT
  // for a queue of another device.
  void wait(const Queue& other);

  // Later commands run after the call.
  void add(std::shared_ptr<QueuedCall> call);

  // Waits for what the queue has by now, and for other calls that its models have. Throws Error
  // TIMEOUT where the wait ends early.
  void synchronize();

  // False while synchronize would wait. Never blocks.
  bool query();

  // How many calls and pieces of host memory it keeps, for tests.
  size_t kept() const;

 private:
  using Calls = std::vector<std::shared_ptr<QueuedCall>>;
  // Of the host, read by commands before the mark.
  struct Held {
    std::unique_ptr<Event> mark;
    std::shared_ptr<char[]> memory;
  };

  void check(const DeviceArray& array, const TensorView& host) const;
  void drop_passed();  // REQUIRES: mutex_ is held
  Calls calls() const;
  void report(const Calls& done, std::optional<Error> failure);

  Device& device_;
  Stream& stream_;
  mutable std::mutex mutex_;  // guards what follows
  Calls calls_;               // whose failures nobody has read
  std::deque<Held> held_;     // oldest first
};

}  // namespace graft::deploy
