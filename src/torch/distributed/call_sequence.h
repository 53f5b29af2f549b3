// src/torch/distributed/call_sequence.h: the collectives that a group was called for, one after the
// other.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/stream/event.h"
#include "torch/distributed/collective_builder.h"
#include "torch/distributed/collective_work.h"
#include "torch/distributed/exchange.h"
#include "torch/distributed/group_engines.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// What profilers, messages and futures show of a collective.
struct CollectiveCall {
  c10d::OpType type;
  const char* title;  // static storage
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
};

// Numbers the calls, starts each one's work after a mark in the current stream of its device, and
// collects the works of calls that are coalesced. Where nothing could be started, a method throws
// RuntimeError; what fails later is an error of the work. One thread, that of the group's calls.
class CallSequence {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // engines: outlive this.
  CallSequence(GroupEngines& engines, int rank, int size)
      : engines_(engines), rank_(rank), size_(size) {}

  // How many calls there were.
  uint64_t count() const { return count_; }

  // Starts a draft's exchange. The work takes the draft's last steps over.
  WorkPtr start(const CollectiveCall& call, CollectiveBuilder& draft);

  // Sends span to a rank if the call is of type SEND, else receives it from one (from any: -1).
  // draft: keeps the memory of span.
  WorkPtr transfer(const CollectiveCall& call, CollectiveBuilder& draft, const Span& span, int peer,
                   int tag);

  // Done when every rank is here and the device has passed what is in its current stream.
  WorkPtr barrier(std::chrono::milliseconds timeout, c10::Device device);

  // One work of several collectives, made by each(rank) for every rank.
  WorkPtr for_every_rank(const std::function<WorkPtr(int rank)>& each);

  // Between the two, every call's work is also part of the one that end_coalescing returns. Each
  // throws RuntimeError where the other has to come first.
  void start_coalescing();
  WorkPtr end_coalescing();

 private:
  static std::shared_ptr<Event> mark(c10::Device device);
  c10::intrusive_ptr<CollectiveWork> work_for(const CollectiveCall& call, c10::Device device);
  c10::intrusive_ptr<CollectiveWork> work_for(const CollectiveCall& call, CollectiveBuilder& draft);
  void run(const CollectiveBuilder& draft, const c10::intrusive_ptr<CollectiveWork>& work);
  WorkPtr noted(WorkPtr work);

  GroupEngines& engines_;
  const int rank_;
  const int size_;
  uint64_t count_ = 0;
  std::optional<std::vector<WorkPtr>> coalescing_;
};

}  // namespace graft::binding
