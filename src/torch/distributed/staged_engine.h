// src/torch/distributed/staged_engine.h: collectives of device memory through pinned host memory
// and Gloo.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "runtime/driver/device_name.h"
#include "torch/device/type.h"
#include "torch/distributed/exchange.h"
#include "torch/distributed/failure_report.h"
#include "torch/distributed/staged_chunk.h"
#include "torch/distributed/task_queue.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// Exchanges run one after the other on a background thread, in chunks: while one is on the wire,
// the next comes down from the device and the one before goes up. Sends and receives run beside
// them. Made by make: what is under way holds the engine. Thread-safe; the order of run, send,
// receive and barrier is the caller's.
class StagedEngine final : public CollectiveEngine,
                           public std::enable_shared_from_this<StagedEngine> {
 public:
  // host: a backend for CPU tensors that nobody else uses.
  StagedEngine(c10::intrusive_ptr<c10d::Backend> host, std::shared_ptr<FailureReport> roll_call);

  void run(const Exchange& exchange, std::shared_ptr<Event> ready,
           const c10::intrusive_ptr<CollectiveWork>& work) override;
  void abort() override;

  // Sends memory to a rank, or receives from one (from any: -1).
  void send(const Span& span, int peer, int tag, std::shared_ptr<Event> ready,
            const c10::intrusive_ptr<CollectiveWork>& work);
  void receive(const Span& span, int peer, int tag, std::shared_ptr<Event> ready,
               const c10::intrusive_ptr<CollectiveWork>& work);

  // Done when every rank is here and the device has passed ready.
  void barrier(std::chrono::milliseconds timeout, std::shared_ptr<Event> ready,
               const c10::intrusive_ptr<CollectiveWork>& work);

  c10d::Backend& host() const { return *host_; }

 private:
  struct Lanes {
    Stream* down = nullptr;
    Stream* up = nullptr;
    Stream* peer = nullptr;  // of sends and receives
  };

  const Lanes& lanes(const OpenDevice& device);
  void hold(const CollectiveWork& work, std::initializer_list<Stream*> streams);
  void transfer(const Exchange& exchange, Event& ready, const Lanes& lanes);
  void await(c10d::Work& work);
  void await_transfer(const c10::intrusive_ptr<c10d::Work>& transfer);
  void refuse_broken();
  void attempt(const c10::intrusive_ptr<CollectiveWork>& work, const std::function<void()>& body);

  const c10::intrusive_ptr<c10d::Backend> host_;
  const std::shared_ptr<FailureReport> roll_call_;
  const std::shared_ptr<TaskQueue> exchanges_ = TaskQueue::make();
  const std::shared_ptr<TaskQueue> sends_ = TaskQueue::make();
  std::atomic<bool> aborted_{false};
  std::mutex posting_;  // orders the calls of host_
  std::mutex mutex_;    // guards what follows
  std::array<Lanes, kMostDevices> lanes_;
  std::unordered_set<c10d::Work*> transfers_;  // sends and receives that threads wait for
};

}  // namespace graft::binding
