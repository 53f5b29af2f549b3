// src/torch/distributed/process_group.cpp: the backend of torch.distributed: groups, point to
// point, barriers.
#include "torch/distributed/process_group.h"

#include <algorithm>
#include <utility>

#include "runtime/driver/op_tag.h"
#include "runtime/stream/device.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/version/c10d.h"

namespace graft::binding {

ProcessGroup::ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                           c10::intrusive_ptr<c10d::Backend> host,
                           c10::intrusive_ptr<GroupOptions> options)
    : Backend(rank, size),
      options_(std::move(options)),
      store_(store->clone()),
      roll_call_(std::make_shared<FailureReport>(store->clone(), rank, size,
                                                 options_->global_ranks_in_group)),
      staged_(std::make_shared<StagedEngine>(std::move(host), roll_call_)) {}

void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  staged_->host().setTimeout(timeout);
}

void ProcessGroup::eagerConnectSingleDevice(at::Device device) {
  setBoundDeviceId(device);
  if (on_bound_) on_bound_(device);
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), getRank());
  if (found == ranks.end()) return nullptr;
  if (split_name_ == options->group_name) {
    if (auto known = split_.lock()) return known;
  }
  auto mine =
      c10::make_intrusive<GroupOptions>(options_->backend, options->timeout, options_->engine);
  mine->group_name = options->group_name;
  const auto& names = options_->global_ranks_in_group;
  for (const int rank : ranks) {
    const auto index = static_cast<size_t>(rank);
    mine->global_ranks_in_group.push_back(index < names.size() ? names[index] : index);
  }
  // Not Gloo's own options, which its split would change while it reads them.
  auto plain = c10::make_intrusive<Options>("gloo", options->timeout);
  plain->group_name = options->group_name;
  auto part =
      staged_->host().split(c10::make_intrusive<c10d::PrefixStore>("staging", store), ranks, plain);
  auto made = c10::make_intrusive<ProcessGroup>(
      c10::make_intrusive<c10d::PrefixStore>("device", store),
      static_cast<int>(found - ranks.begin()), static_cast<int>(ranks.size()), std::move(part),
      std::move(mine));
  split_name_ = options->group_name;
  split_ = c10::weak_intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend>(made));
  return made;
}

void ProcessGroup::abort() {
  staged_->abort();
  const std::lock_guard lock(aborting_);
  aborted_ = true;
  if (native_) native_->abort();
}

void ProcessGroup::shutdown() {
  std::shared_ptr<NativeEngine> native;
  {
    const std::lock_guard lock(aborting_);
    if (!aborted_) native = native_;
  }
  if (native) translate([&] { native->finish(); });
}

c10d::ErrorType ProcessGroup::getError() {
  return roll_call_->reported() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
}

void ProcessGroup::startCoalescing() {
  TORCH_CHECK(!coalescing_, "coalescing was already started: end it first");
  coalescing_.emplace();
}

ProcessGroup::WorkPtr ProcessGroup::endCoalescing() {
  TORCH_CHECK(coalescing_.has_value(), "coalescing was not started: start it first");
  std::vector<WorkPtr> works = std::move(*coalescing_);
  coalescing_.reset();
  return c10::make_intrusive<CoalescedWork>(getRank(), std::move(works));
}

ProcessGroup::WorkPtr ProcessGroup::noted(WorkPtr work) {
  if (coalescing_) coalescing_->push_back(work);
  return work;
}

std::shared_ptr<Event> ProcessGroup::mark(c10::Device device) {
  Stream& stream = current_stream(device.index());
  auto ready = std::make_shared<Event>(stream.device(), false);
  stream.refuse_recording("a collective");
  ready->record(stream);
  return ready;
}

c10::intrusive_ptr<CollectiveWork> ProcessGroup::work_for(const Call& call,
                                                          CollectiveBuilder& draft) {
  auto work = c10::make_intrusive<CollectiveWork>(getRank(), call.type, call.title, call.inputs,
                                                  call.outputs, draft.device(), ++sequence_);
  for (const at::Tensor& tensor : draft.kept) work->keep(tensor);
  for (auto& step : draft.finally) work->finally(std::move(step));
  return work;
}

ProcessGroup::WorkPtr ProcessGroup::start(const Call& call, CollectiveBuilder& draft) {
  const OpScope scope(call.title);
  return translate([&]() -> WorkPtr {
    auto work = work_for(call, draft);
    run(draft, work);
    return noted(std::move(work));
  });
}

// What the driver's library does not take, the same on all ranks, goes through host memory.
void ProcessGroup::run(const CollectiveBuilder& draft,
                       const c10::intrusive_ptr<CollectiveWork>& work) {
  CollectiveEngine& chosen = engine(draft.device());
  try {
    return chosen.run(draft.exchange, mark(draft.device()), work);
  } catch (const Error& error) {
    if (error.status() != GRAFT_UNSUPPORTED || &chosen == staged_.get()) throw;
  }
  staged_->run(draft.exchange, mark(draft.device()), work);
}

ProcessGroup::WorkPtr ProcessGroup::peer_to_peer(c10d::OpType type, const char* title,
                                                 Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(tensors.size() == 1, "send and recv take one tensor");
  TORCH_CHECK(peer < getSize(), "the group has ", getSize(), " ranks, so there is no rank ", peer);
  TORCH_CHECK(!mirrored(),
              "send and recv need a process for each rank: the ranks of this group are ",
              "simulated by one (GRAFT_HOST_SIMULATE)");
  const bool sends = type == c10d::OpType::SEND;
  CollectiveBuilder draft(Collective::kBroadcast, c10d::BroadcastOptions());
  const Span span{sends ? draft.input(tensors[0]) : draft.output(tensors[0])};
  return translate([&]() -> WorkPtr {
    auto work = work_for({type, title, tensors, tensors}, draft);
    auto ready = mark(draft.device());
    if (sends) {
      staged_->send(span, peer, tag, std::move(ready), work);
    } else {
      staged_->receive(span, peer, tag, std::move(ready), work);
    }
    return noted(std::move(work));
  });
}

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int peer, int tag) {
  return peer_to_peer(c10d::OpType::SEND, "graft:send", tensors, peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int peer, int tag) {
  return peer_to_peer(c10d::OpType::RECV, "graft:recv", tensors, peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return peer_to_peer(c10d::OpType::RECVANYSOURCE, "graft:recvAnySource", tensors, -1, tag);
}

ProcessGroup::WorkPtr ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  const bool given = options.device && options.device->type() == kDeviceType;
  const auto index = given ? options.device->index() : c10::DeviceIndex{-1};
  const c10::Device device = device_of(resolve(index));
  return translate([&]() -> WorkPtr {
    auto work =
        c10::make_intrusive<CollectiveWork>(getRank(), c10d::OpType::BARRIER, "graft:barrier",
                                            Tensors{}, Tensors{}, device, ++sequence_);
    staged_->barrier(options.timeout, mark(device), work);
    return noted(std::move(work));
  });
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  staged_->host().monitoredBarrier(options, wait_all_ranks);
}

}  // namespace graft::binding
