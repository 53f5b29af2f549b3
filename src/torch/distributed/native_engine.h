// src/torch/distributed/native_engine.h: collectives by the driver's own library, on streams of the
// device.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/platform/collective_group.h"
#include "torch/distributed/exchange.h"
#include "torch/distributed/failure_report.h"
#include "torch/distributed/task_queue.h"

namespace graft::binding {

// Every exchange is queued by run itself: its work is complete at once, and the device does the
// rest. Asynchronous ones go to a stream of the engine, the others to the caller's. One that fails
// later breaks the engine: its work and later calls throw, and so does the next wait for the device
// on a stream that waited for it. run comes from one thread at a time.
class NativeEngine final : public CollectiveEngine,
                           public std::enable_shared_from_this<NativeEngine> {
 public:
  // Takes the group over. lane: for asynchronous exchanges. REQUIRES: its device is the group's.
  NativeEngine(Stream& lane, std::unique_ptr<CollectiveGroup> group,
               std::shared_ptr<FailureReport> roll_call);
  ~NativeEngine() override;

  OpenDevice& device() const { return group_->device(); }

  void run(const Exchange& exchange, std::shared_ptr<Event> ready,
           const c10::intrusive_ptr<CollectiveWork>& work) override;
  void abort() override { group_->abort(); }

  // Waits for what is under way. Throws Error where it failed and nobody was told yet.
  void finish();

 private:
  void enqueue(Stream& stream, const Exchange& exchange, CollectiveWork& work);
  void enqueue_moves(Stream& stream, const Exchange& exchange);
  void gather(Stream& stream, const Exchange& exchange, CollectiveWork& work);
  void reduce_scatter(Stream& stream, const Exchange& exchange, CollectiveWork& work);
  void watch(const c10::intrusive_ptr<CollectiveWork>& work);
  using Works = std::vector<c10::intrusive_ptr<CollectiveWork>>;
  Works judge_settled();
  void judge(CollectiveWork& work);
  bool ask();
  void told();

  const std::unique_ptr<CollectiveGroup> group_;
  const std::shared_ptr<FailureReport> roll_call_;
  const std::shared_ptr<TaskQueue> watched_ = TaskQueue::make();
  Stream& lane_;

  std::mutex judging_;  // guards what follows
  std::deque<c10::intrusive_ptr<CollectiveWork>> watching_;
  std::optional<std::string> untold_;  // a failure that nobody was told who waited for the device
};

}  // namespace graft::binding
