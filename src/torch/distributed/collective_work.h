// src/torch/distributed/collective_work.h: what a caller of a collective waits for.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// Makes a stream, and its device, current for this thread while it lives.
class StreamScope {
 public:
  explicit StreamScope(Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const c10::DeviceIndex device_before_;
  const c10::DeviceIndex device_;
  Stream* const stream_before_;
};

// Done as soon as all its commands are queued: wait() blocks the host until then and makes the
// current stream wait for the rest; synchronize() does the second alone; the future's tensors are
// ordered the same way. Keeps the memory of the collective until then. Thread-safe, but keep and
// finally, which come first.
class CollectiveWork final : public c10d::Work {
 public:
  // title: static storage, for profilers. outputs: what result() and the future give.
  CollectiveWork(int rank, c10d::OpType type, const char* title,
                 const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
                 c10::Device device, uint64_t sequence);

  // Holds a tensor until the commands are queued.
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  const std::vector<at::Tensor>& kept() const { return kept_; }

  // Runs step after the exchange, on its stream: for what changes the results once more.
  void finally(std::function<void()> step) { steps_.push_back(std::move(step)); }

  const char* title() const { return title_; }

  // For engines, one of them, once: all commands are in stream, or it failed.
  void complete(Stream& stream);
  void fail(std::exception_ptr error);

  // For engines, after complete(): blocks until the device is done. Its late error is with the
  // stream when this returns, whichever thread settled first.
  void settle() noexcept;
  // Whether settle() would not block.
  bool settled();

  // The results are wrong, as a late error said: wait() throws from now on. REQUIRES: complete().
  void fail_late(std::exception_ptr error) { finish(std::move(error)); }

  // For engines, before complete(): told is called when wait() has thrown.
  void when_told(std::function<void()> told) { told_ = std::move(told); }

  void set_source_rank(int rank) { source_rank_ = rank; }

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // True when the device has passed the results, too, or after a failure.
  bool isCompleted() override;
  int sourceRank() const override { return source_rank_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override;
  void blockCurrentStream() override { wait(); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }

 private:
  bool claim();
  void settle_future();
  void mark_future();

  const char* const title_;
  const uint64_t sequence_;
  const std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<at::Tensor> kept_;
  std::vector<std::function<void()>> steps_;
  std::function<void()> told_;
  int source_rank_ = -1;

  std::mutex settling_;  // held from the wait until the stream has its error; before state_
  bool is_settled_ = false;

  std::mutex state_;  // guards what follows
  bool claimed_ = false;
  bool finished_ = false;
  bool future_wanted_ = false;
  bool future_marked_ = false;
  Stream* stream_ = nullptr;
  std::unique_ptr<Event> done_;
};

// Several works as one: done when all are.
class CoalescedWork final : public c10d::Work {
 public:
  CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { wait(); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> works_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace graft::binding
