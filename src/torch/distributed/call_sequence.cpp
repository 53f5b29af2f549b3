// src/torch/distributed/call_sequence.cpp: the collectives that a group was called for, one after
// the other.
#include "torch/distributed/call_sequence.h"

#include <utility>

#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"

namespace graft::binding {

std::shared_ptr<Event> CallSequence::mark(c10::Device device) {
  Stream& stream = current_stream(device.index());
  auto ready = std::make_shared<Event>(stream.device(), false);
  stream.refuse_recording("a collective");
  ready->record(stream);
  return ready;
}

c10::intrusive_ptr<CollectiveWork> CallSequence::work_for(const CollectiveCall& call,
                                                          c10::Device device) {
  return c10::make_intrusive<CollectiveWork>(rank_, call.type, call.title, call.inputs,
                                             call.outputs, device, ++count_);
}

c10::intrusive_ptr<CollectiveWork> CallSequence::work_for(const CollectiveCall& call,
                                                          CollectiveBuilder& draft) {
  auto work = work_for(call, draft.device());
  for (const at::Tensor& tensor : draft.kept) work->keep(tensor);
  for (auto& step : draft.finally) work->finally(std::move(step));
  return work;
}

CallSequence::WorkPtr CallSequence::noted(WorkPtr work) {
  if (coalescing_) coalescing_->push_back(work);
  return work;
}

CallSequence::WorkPtr CallSequence::start(const CollectiveCall& call, CollectiveBuilder& draft) {
  const OpScope scope(call.title);
  return translate([&]() -> WorkPtr {
    auto work = work_for(call, draft);
    run(draft, work);
    return noted(std::move(work));
  });
}

// What the driver's library does not take, the same on all ranks, goes through host memory.
void CallSequence::run(const CollectiveBuilder& draft,
                       const c10::intrusive_ptr<CollectiveWork>& work) {
  CollectiveEngine& chosen = engines_.choose(draft.device());
  try {
    return chosen.run(draft.exchange, mark(draft.device()), work);
  } catch (const Error& error) {
    if (error.status() != GRAFT_UNSUPPORTED || &chosen == &engines_.staged()) throw;
  }
  engines_.staged().run(draft.exchange, mark(draft.device()), work);
}

CallSequence::WorkPtr CallSequence::transfer(const CollectiveCall& call, CollectiveBuilder& draft,
                                             const Span& span, int peer, int tag) {
  return translate([&]() -> WorkPtr {
    auto work = work_for(call, draft);
    auto ready = mark(draft.device());
    if (call.type == c10d::OpType::SEND) {
      engines_.staged().send(span, peer, tag, std::move(ready), work);
    } else {
      engines_.staged().receive(span, peer, tag, std::move(ready), work);
    }
    return noted(std::move(work));
  });
}

CallSequence::WorkPtr CallSequence::barrier(std::chrono::milliseconds timeout, c10::Device device) {
  return translate([&]() -> WorkPtr {
    auto work = work_for({c10d::OpType::BARRIER, "graft:barrier", {}, {}}, device);
    engines_.staged().barrier(timeout, mark(device), work);
    return noted(std::move(work));
  });
}

CallSequence::WorkPtr CallSequence::for_every_rank(const std::function<WorkPtr(int rank)>& each) {
  std::optional<std::vector<WorkPtr>> outer = std::exchange(coalescing_, std::nullopt);
  std::vector<WorkPtr> works;
  try {
    for (int rank = 0; rank < size_; ++rank) works.push_back(each(rank));
  } catch (...) {
    coalescing_ = std::move(outer);
    throw;
  }
  coalescing_ = std::move(outer);
  return noted(c10::make_intrusive<CoalescedWork>(rank_, std::move(works)));
}

void CallSequence::start_coalescing() {
  TORCH_CHECK(!coalescing_, "coalescing was already started: end it first");
  coalescing_.emplace();
}

CallSequence::WorkPtr CallSequence::end_coalescing() {
  TORCH_CHECK(coalescing_.has_value(), "coalescing was not started: start it first");
  std::vector<WorkPtr> works = std::move(*coalescing_);
  coalescing_.reset();
  return c10::make_intrusive<CoalescedWork>(rank_, std::move(works));
}

}  // namespace graft::binding
