// src/torch/distributed/collective_work.cpp: what a caller of a collective waits for.
#include "torch/distributed/collective_work.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/driver/device_name.h"
#include "runtime/driver/open_device.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/distributed/task_queue.h"

namespace graft::binding {
namespace {

// PyTorch's future counts the devices of a type, and writes beyond them for one that only
// torch.device("ve") has: that gets a future without devices. Who gives it on (ve/collectives.cpp)
// lets its stream wait.
c10::intrusive_ptr<c10::ivalue::Future> future_of(std::vector<c10::Device> devices) {
  std::erase_if(devices, [](c10::Device one) { return one.index() >= kFirstCarriedIndex; });
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                  std::move(devices));
}

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    if (std::find(devices.begin(), devices.end(), tensor.device()) == devices.end()) {
      devices.push_back(tensor.device());
    }
  }
  return devices;
}

}  // namespace

StreamScope::StreamScope(Stream& stream)
    : device_before_(current_device()),
      device_(static_cast<c10::DeviceIndex>(stream.device().index())),
      stream_before_(&current_stream(device_)) {
  set_current_device_unchecked(device_);
  detail::current.streams[device_] = &stream;
}

StreamScope::~StreamScope() {
  detail::current.streams[device_] = stream_before_;
  set_current_device_unchecked(device_before_);
}

CollectiveWork::CollectiveWork(int rank, c10d::OpType type, const char* title,
                               const std::vector<at::Tensor>& inputs,
                               std::vector<at::Tensor> outputs, c10::Device device,
                               uint64_t sequence)
    : Work(rank, type, title, inputs),
      title_(title),
      sequence_(sequence),
      outputs_(std::move(outputs)),
      future_(future_of({device})) {}

bool CollectiveWork::claim() {
  const std::lock_guard lock(state_);
  return !std::exchange(claimed_, true);
}

void CollectiveWork::complete(Stream& stream) {
  if (!claim()) return;
  std::unique_ptr<Event> done;
  try {
    const StreamScope scope(stream);
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    for (const auto& step : steps_) step();
    done = std::make_unique<Event>(stream.device(), false);
    done->record(stream);
  } catch (...) {
    const std::lock_guard lock(state_);
    claimed_ = false;
    throw;
  }
  steps_.clear();
  kept_.clear();
  {
    const std::lock_guard lock(state_);
    done_ = std::move(done);
    stream_ = &stream;
  }
  finish();
  settle_future();
}

void CollectiveWork::fail(std::exception_ptr error) {
  if (!claim()) return;
  finish(std::move(error));
  settle_future();
}

// Callbacks of a future may block, or run Python: they get a thread of their own.
void CollectiveWork::settle_future() {
  {
    const std::lock_guard lock(state_);
    finished_ = true;
    if (!future_wanted_) return;
    future_marked_ = true;
  }
  auto self = c10::intrusive_ptr<CollectiveWork>::unsafe_reclaim_from_nonowning(this);
  run_in_background([self] { self->mark_future(); });
}

void CollectiveWork::mark_future() {
  if (std::exception_ptr error = exception()) return future_->setError(std::move(error));
  const StreamScope scope(*stream_);
  future_->markCompleted(c10::IValue(outputs_));
}

c10::intrusive_ptr<c10::ivalue::Future> CollectiveWork::getFuture() {
  bool mine = false;
  {
    const std::lock_guard lock(state_);
    future_wanted_ = true;
    mine = finished_ && !std::exchange(future_marked_, true);
  }
  if (mine) mark_future();
  return future_;
}

bool CollectiveWork::wait(std::chrono::milliseconds timeout) {
  try {
    return Work::wait(timeout);
  } catch (...) {
    if (told_) told_();
    throw;
  }
}

bool CollectiveWork::isCompleted() {
  if (!Work::isCompleted()) return false;
  const std::lock_guard lock(state_);
  return done_ == nullptr || translate([&] { return done_->query(); });
}

void CollectiveWork::synchronize() {
  const std::lock_guard lock(state_);
  if (done_ == nullptr) return;
  translate([&] {
    Stream& caller = current_stream(static_cast<c10::DeviceIndex>(stream_->device().index()));
    if (&caller != stream_) caller.wait(*done_);
  });
}

void CollectiveWork::settle() noexcept {
  const std::lock_guard one_at_a_time(settling_);
  if (is_settled_) return;  // a second wait would take the error of a later command
  Event* done = nullptr;
  {
    const std::lock_guard lock(state_);
    done = done_.get();
  }
  is_settled_ = done == nullptr || done->settle();
}

bool CollectiveWork::settled() {
  const std::lock_guard lock(state_);
  return done_ == nullptr || done_->query();
}

void CollectiveWork::abort() {
  fail(std::make_exception_ptr(C10_BUILD_ERROR(DistBackendError, "the collective was aborted")));
}

CoalescedWork::CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : Work(rank, c10d::OpType::COALESCED, "graft:coalesced"), works_(std::move(works)) {}

bool CoalescedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](auto& work) { return work->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](auto& work) { return work->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& work : works_) {
    if (std::exception_ptr error = work->exception()) return error;
  }
  return nullptr;
}

std::vector<at::Tensor> CoalescedWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& work : works_) {
    const std::vector<at::Tensor> more = work->result();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void CoalescedWork::synchronize() {
  for (const auto& work : works_) work->synchronize();
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  for (const auto& work : works_) work->wait(timeout);
  return true;
}

void CoalescedWork::abort() {
  for (const auto& work : works_) work->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> CoalescedWork::getFuture() {
  const std::lock_guard lock(mutex_);
  if (future_) return future_;
  const std::vector<at::Tensor> outputs = result();
  future_ = future_of(devices_of(outputs));
  if (works_.empty()) {
    future_->markCompleted(c10::IValue(outputs));
    return future_;
  }
  const auto left = std::make_shared<std::atomic<size_t>>(works_.size());
  for (const auto& work : works_) {
    work->getFuture()->addCallback(
        [left, outputs, works = works_, all = future_](c10::ivalue::Future& one) {
          if (one.hasError()) return all->setErrorIfNeeded(one.exception_ptr());
          if (left->fetch_sub(1) != 1 || all->hasError()) return;
          for (const auto& each : works) each->synchronize();  // they may be on several streams
          all->markCompleted(c10::IValue(outputs));
        });
  }
  return future_;
}

}  // namespace graft::binding
