// src/torch/distributed/staged_engine.cpp: collectives of device memory through pinned host memory
// and Gloo.
#include "torch/distributed/staged_engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "runtime/driver/op_tag.h"
#include "runtime/platform/platform.h"
#include "torch/device/pinned.h"
#include "torch/tensor/memory.h"

namespace graft::binding {
namespace {

constexpr uint64_t kChunkBytes = 4 << 20;
constexpr std::chrono::milliseconds kSlice(500);      // between two looks at the other ranks
constexpr std::chrono::milliseconds kPatience(3000);  // for their answers

[[noreturn]] void throw_backend_error(const std::string& text) {
  C10_THROW_ERROR(DistBackendError, text);
}

}  // namespace

StagedEngine::StagedEngine(c10::intrusive_ptr<c10d::Backend> host,
                           std::shared_ptr<FailureReport> roll_call)
    : host_(std::move(host)), roll_call_(std::move(roll_call)) {}

const StagedEngine::Lanes& StagedEngine::lanes(const OpenDevice& device) {
  const std::lock_guard lock(mutex_);
  Lanes& lanes = lanes_.at(static_cast<size_t>(device.index()));
  if (lanes.down == nullptr) {
    DeviceStreams& streams = platform().device(device.index()).streams();
    lanes.down = &streams.from_pool(0);
    lanes.up = &streams.from_pool(0);
    lanes.peer = &streams.from_pool(0);
  }
  return lanes;
}

void StagedEngine::hold(const CollectiveWork& work, std::initializer_list<Stream*> streams) {
  for (const at::Tensor& tensor : work.kept()) {
    for (Stream* stream : streams) record_stream(tensor.storage().data_ptr(), *stream);
  }
}

void StagedEngine::refuse_broken() {
  if (aborted_.load()) throw_backend_error("the process group was aborted");
  if (const auto text = roll_call_->reported()) {
    throw_backend_error("the process group is broken since an earlier failure: " + *text);
  }
}

void StagedEngine::attempt(const c10::intrusive_ptr<CollectiveWork>& work,
                           const std::function<void()>& body) {
  const OpScope scope(work->title());
  std::string what;
  try {
    return body();
  } catch (const std::exception& error) {
    what = std::string(work->title()) + " failed: " + error.what();
  } catch (...) {
    what = std::string(work->title()) + " failed";
  }
  if (!aborted_.load()) what = roll_call_->report(what, kPatience);
  work->fail(std::make_exception_ptr(C10_BUILD_ERROR(DistBackendError, what)));
}

// Gloo's works end by themselves at the timeout; another rank's failure, or abort, comes earlier.
void StagedEngine::await(c10d::Work& work) {
  for (;;) {
    try {
      work.wait(kSlice);
      return;
    } catch (...) {
      if (work.isCompleted()) return void(work.wait());  // it may have come after the slice's end
    }
    if (aborted_.load()) throw_backend_error("the process group was aborted");
    if (const auto failure = roll_call_->failure()) throw_backend_error(*failure);
  }
}

// Gloo closes its connections where a wait for one of these ends early: so only abort does that.
void StagedEngine::await_transfer(const c10::intrusive_ptr<c10d::Work>& transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_.load()) transfer->abort();
    transfers_.insert(transfer.get());
  }
  const auto forget = [&](void*) {
    const std::lock_guard lock(mutex_);
    transfers_.erase(transfer.get());
  };
  const std::unique_ptr<StagedEngine, decltype(forget)> forgets(this, forget);
  if (!transfer->wait()) throw_backend_error("the process group was aborted");
}

void StagedEngine::abort() {
  const std::lock_guard lock(mutex_);
  aborted_.store(true);
  for (c10d::Work* transfer : transfers_) transfer->abort();
}

void StagedEngine::run(const Exchange& exchange, std::shared_ptr<Event> ready,
                       const c10::intrusive_ptr<CollectiveWork>& work) {
  refuse_broken();
  const Lanes& lanes = this->lanes(ready->device());
  hold(*work, {lanes.down, lanes.up});
  exchanges_->add([self = shared_from_this(), exchange, ready, work, &lanes] {
    self->attempt(work, [&] {
      self->refuse_broken();
      self->transfer(exchange, *ready, lanes);
      work->complete(*lanes.up);
    });
  });
}

void StagedEngine::transfer(const Exchange& exchange, Event& ready, const Lanes& lanes) {
  lanes.down->wait(ready);
  lanes.up->wait(ready);
  // An exchange sees what the one before it left, whoever waited for that.
  Event landed(lanes.up->device(), false);
  landed.record(*lanes.up);
  lanes.down->wait(landed);
  const bool whole = exchange.kind == Collective::kAllToAll;  // its parts differ between ranks
  std::deque<StagedChunk> fetched, posted;
  const auto post = [&] {
    fetched.front().arrive();
    const std::lock_guard lock(posting_);
    fetched.front().post(*host_);
    posted.push_back(std::move(fetched.front()));
    fetched.pop_front();
  };
  const auto land = [&] {
    await(posted.front().work());
    posted.front().deliver(*lanes.up);
    posted.pop_front();
  };
  uint64_t offset = 0;
  while (offset < exchange.part_bytes || (whole && offset == 0)) {
    const uint64_t bytes =
        whole ? 1 : std::min<uint64_t>(kChunkBytes, exchange.part_bytes - offset);
    fetched.emplace_back(exchange, host_->getRank(), host_->getSize(), offset, bytes);
    fetched.back().fetch(*lanes.down);
    offset += bytes;
    if (fetched.size() > 1) post();
    if (posted.size() > 1) land();
  }
  while (!fetched.empty()) post();
  while (!posted.empty()) land();
}

void StagedEngine::send(const Span& span, int peer, int tag, std::shared_ptr<Event> ready,
                        const c10::intrusive_ptr<CollectiveWork>& work) {
  refuse_broken();
  Stream& lane = *lanes(ready->device()).peer;
  hold(*work, {&lane});
  sends_->add([self = shared_from_this(), span, peer, tag, ready, work, &lane] {
    self->attempt(work, [&] {
      const at::Tensor host = pinned_bytes(lane, bytes_of(span));
      lane.wait(*ready);
      copy_to_host(lane, span, 0, bytes_of(span), host.data_ptr<uint8_t>());
      record_pinned(host.data_ptr(), lane);
      Event fetched(lane.device(), false);
      fetched.record(lane);
      fetched.synchronize();
      std::vector<at::Tensor> tensors{host};
      const std::lock_guard lock(self->posting_);
      auto sent = self->host_->send(tensors, peer, tag);
      run_in_background([self, work, sent, host, &lane] {
        self->attempt(work, [&] {
          self->await_transfer(sent);
          work->complete(lane);
        });
      });
    });
  });
}

void StagedEngine::receive(const Span& span, int peer, int tag, std::shared_ptr<Event> ready,
                           const c10::intrusive_ptr<CollectiveWork>& work) {
  refuse_broken();
  Stream& lane = *lanes(ready->device()).peer;
  hold(*work, {&lane});
  const at::Tensor host = pinned_bytes(lane, bytes_of(span));
  std::vector<at::Tensor> tensors{host};
  c10::intrusive_ptr<c10d::Work> received;
  {
    const std::lock_guard lock(posting_);
    received = peer < 0 ? host_->recvAnysource(tensors, tag) : host_->recv(tensors, peer, tag);
  }
  run_in_background([self = shared_from_this(), span, ready, work, received, host, &lane] {
    self->attempt(work, [&] {
      self->await_transfer(received);
      work->set_source_rank(received->sourceRank());
      lane.wait(*ready);
      copy_from_host(lane, span, 0, bytes_of(span), host.data_ptr<uint8_t>());
      record_pinned(host.data_ptr(), lane);
      work->complete(lane);
    });
  });
}

void StagedEngine::barrier(std::chrono::milliseconds timeout, std::shared_ptr<Event> ready,
                           const c10::intrusive_ptr<CollectiveWork>& work) {
  refuse_broken();
  Stream& lane = *lanes(ready->device()).up;
  exchanges_->add([self = shared_from_this(), timeout, ready, work, &lane] {
    self->attempt(work, [&] {
      self->refuse_broken();
      ready->synchronize();
      c10d::BarrierOptions options;
      options.timeout = timeout;
      c10::intrusive_ptr<c10d::Work> all;
      {
        const std::lock_guard lock(self->posting_);
        all = self->host_->barrier(options);
      }
      self->await(*all);
      work->complete(lane);
    });
  });
}

}  // namespace graft::binding
