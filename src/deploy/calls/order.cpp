// src/deploy/calls/order.cpp: the order of a model's calls, and calls that may not be done.
#include "deploy/calls/order.h"

#include <utility>

#include "runtime/driver/open_device.h"

namespace graft::deploy {

void follow(Stream& later, Stream& earlier) {
  if (&later == &earlier) return;
  Event mark(earlier.device(), false);
  mark.record(earlier);
  later.wait(mark);
}

void CallOrder::end() {
  for (const std::shared_ptr<QueuedCall>& call : calls_) {
    call->memory_.clear();
    const std::lock_guard lock(call->mutex_);
    call->finished_ = true;
  }
  calls_.clear();
}

void CallOrder::finish() {
  if (calls_.empty()) return;
  try {
    stream_.synchronize();
    end();
  } catch (const Error& error) {
    if (stream_.given_up() && !stream_.device().lost()) throw;  // commands still run
    fail(error);
    end();
  }
}

bool CallOrder::try_finish() {
  if (calls_.empty()) return true;
  try {
    if (!stream_.query()) return false;
  } catch (const Error& error) {
    fail(error);
  }
  end();
  return true;
}

void CallOrder::fail(const Error& error) {
  const std::string what = error.what();
  const bool named = what.find(model_) != std::string::npos;
  const Error told(error.status(), named ? what : model_ + ": " + what);
  for (const std::shared_ptr<QueuedCall>& call : calls_) {
    call->fail(told);
  }
}

void CallOrder::take_late() noexcept {
  const std::optional<Error> late = stream_.take_late();
  if (late) fail(*late);
}

bool CallOrder::queued_since(const CommandCounts& before) const {
  const CommandCounts now = stream_.counts();
  return now.launches != before.launches || now.graphs != before.graphs ||
         now.copies != before.copies || now.fills != before.fills;
}

void QueuedCall::end(Staging* staging) {
  done_.record(order_->stream());
  memory_ = staging->take();
}

void QueuedCall::finish() {
  done_.settle();  // while others may queue calls
  const std::lock_guard lock(order_->turn());
  if (!finished()) order_->finish();
}

void QueuedCall::wait() {
  finish();
  if (const std::optional<Error> error = failure()) throw *error;
}

bool QueuedCall::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

bool QueuedCall::succeeded() const {
  const std::lock_guard lock(mutex_);
  return finished_ && !failure_;
}

std::optional<Error> QueuedCall::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void QueuedCall::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_.emplace(error);
}

bool QueuedCall::query() {
  const std::unique_lock lock(order_->turn(), std::try_to_lock);
  return lock.owns_lock() && (finished() || order_->try_finish());
}

HostResult QueuedCall::download(const TensorView& tensor) {
  wait();
  const std::lock_guard lock(order_->turn());
  order_->finish();  // what fails from here on is of the copy
  Staging staging(order_->stream());
  return std::move(staging.download(std::span(&tensor, 1)).front());
}

}  // namespace graft::deploy
