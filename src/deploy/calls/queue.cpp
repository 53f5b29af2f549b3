// src/deploy/calls/queue.cpp: commands and calls of models in the order that a program gives them.
#include "deploy/calls/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "deploy/host_tensor.h"
#include "runtime/driver/op_tag.h"

namespace graft::deploy {
namespace {

std::string form(const TensorView& view) {
  return told(view.dtype, view.sizes, static_cast<size_t>(view.rank));
}

bool equal(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.sizes, a.sizes + a.rank, b.sizes);
}

}  // namespace

Queue::~Queue() {
  if (stream_.settle()) return;
  for (Held& one : held_) stream_.keep_alive(std::move(one.memory));
}

void Queue::check(const DeviceArray& array, const TensorView& host) const {
  if (&array.device() != &device_) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("the array is in memory of {}, the queue is of {}: use a queue of the "
                            "array's device",
                            array.device().label(), device_.label()));
  }
  const bool nowhere = host.address == 0 && host.count() > 0;
  if (equal(array.view(), host) && !nowhere) return;
  throw Error(
      GRAFT_INVALID_ARGUMENT,
      fmt::format("the array is {}, the host memory {}{}: give memory of the same dtype and "
                  "sizes",
                  form(array.view()), form(host), nowhere ? " without data" : ""));
}

void Queue::drop_passed() {
  const auto passed = [](const Held& one) {
    try {
      return one.mark->query();
    } catch (const Error&) {  // a lost device
      return false;
    }
  };
  while (!held_.empty() && passed(held_.front())) held_.pop_front();
}

void Queue::write(const DeviceArray& to, const TensorView& from) {
  check(to, from);
  if (to.bytes() == 0) return;
  const OpScope named("a copy to a device array");
  to.use_on(stream_);
  Held held{std::make_unique<Event>(device_, false), packed(from)};
  stream_.copy(to.view().address, reinterpret_cast<uint64_t>(held.memory.get()), to.bytes(),
               GRAFT_HOST_TO_DEVICE);
  const std::shared_ptr<char[]> memory = held.memory;
  try {
    held.mark->record(stream_);
    const std::lock_guard lock(mutex_);
    drop_passed();
    held_.push_back(std::move(held));
  } catch (...) {
    stream_.keep_alive(memory);
    throw;
  }
}

void Queue::read(const DeviceArray& from, const TensorView& to) {
  check(from, to);
  if (!to.contiguous()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("the host memory of {} is not row-major: read it row-major", form(to)));
  }
  if (from.bytes() == 0) return;
  const OpScope named("a copy of a device array");
  from.use_on(stream_);
  stream_.copy(to.address, from.view().address, from.bytes(), GRAFT_DEVICE_TO_HOST);
}

void Queue::wait(const Queue& other) {
  if (&other.device_ != &device_) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("a queue of {} cannot wait for one of {}: synchronize that one",
                            device_.label(), other.device_.label()));
  }
  follow(stream_, other.stream_);
}

void Queue::add(std::shared_ptr<QueuedCall> call) {
  stream_.wait(call->done());
  const std::lock_guard lock(mutex_);
  std::erase_if(calls_, [](const auto& one) { return one->succeeded(); });
  calls_.push_back(std::move(call));
}

Queue::Calls Queue::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

size_t Queue::kept() const {
  const std::lock_guard lock(mutex_);
  return calls_.size() + held_.size();
}

void Queue::report(const Calls& done, std::optional<Error> failure) {
  std::optional<Error> first;
  for (const std::shared_ptr<QueuedCall>& call : done) {
    if (!first) first = call->failure();
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(calls_, [&](const auto& one) { return std::ranges::count(done, one) > 0; });
  drop_passed();
  if (first) throw *first;  // the queue's own failure comes of it
  if (failure) throw *failure;
}

void Queue::synchronize() {
  const Calls all = calls();
  for (const std::shared_ptr<QueuedCall>& call : all) call->finish();
  std::optional<Error> failure;
  try {
    stream_.synchronize();
  } catch (const Error& error) {
    if (stream_.given_up() && !device_.lost()) throw;
    failure = error;
  }
  report(all, failure);
}

bool Queue::query() {
  const Calls all = calls();
  for (const std::shared_ptr<QueuedCall>& call : all) {
    if (!call->query()) return false;
  }
  std::optional<Error> failure;
  try {
    if (!stream_.query()) return false;
  } catch (const Error& error) {
    failure = error;
  }
  report(all, failure);
  return true;
}

}  // namespace graft::deploy
