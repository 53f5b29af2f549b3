// src/runtime/stream/errors.cpp: a stream's commands that fail late.
#include <memory>
#include <string>
#include <utility>

#include "runtime/driver/op_trace.h"
#include "runtime/driver/readable_text.h"
#include "runtime/stream/device.h"
#include "runtime/stream/stream.h"

namespace graft {

Error Stream::late_error(graft_status status) {
  uint32_t tag = 0;
  char text[4096] = "";
  if (table_.stream_error != nullptr && handle_ != nullptr) {
    if (Driver::call_locked(table_.stream_error, handle_, &tag, text, sizeof(text)) != GRAFT_OK)
      tag = 0;
    text[sizeof(text) - 1] = '\0';
  }
  const std::string op = op_name(tag);
  const std::string says = text[0] != '\0' ? readable(text) : status_text(status);
  if (status == GRAFT_DEVICE_LOST) {
    device_.lose(says, op);
    return device_.unusable_error();
  }
  return {status, (op.empty() ? "A command" : op) + " failed on " + device_.label() + ": " +
                      status_name(status) + ": " + says +
                      " (the command failed while it ran; this later call reports it)" +
                      op_trace_note(tag)};
}

void Stream::keep(graft_status status) {
  const Error error = late_error(status);
  if (kept_) {
    ++unread_;
  } else {
    kept_.emplace(error);
  }
}

void Stream::throw_late(graft_status status) {
  std::unique_lock<std::mutex> lock(mutex_);
  keep(status);
  throw_kept(lock);
}

void Stream::keep_late(graft_status status) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  keep(status);
}

void Stream::throw_kept(std::unique_lock<std::mutex>& lock) {
  const Error error = *kept_;
  const uint64_t more = std::exchange(unread_, 0);
  kept_.reset();
  lock.unlock();
  concerns_.ask();  // a command elsewhere that failed says more than what failed because of it
  if (more == 0) throw error;
  throw Error(error.status(), error.what() + (". After it " + std::to_string(more)) +
                                  " more failed on this stream before this error was reported");
}

void Stream::finish_wait(std::unique_lock<std::mutex>& lock, graft_status status) {
  if (status != GRAFT_OK) keep(status);
  if (kept_) throw_kept(lock);
  const Check check = std::exchange(check_, nullptr);
  void* const context = check_context_;
  lock.unlock();
  let_go_done();
  if (check != nullptr) check(*this, context);
  concerns_.ask();
}

std::optional<Error> Stream::take_late() noexcept {
  const std::lock_guard lock(mutex_);
  unread_ = 0;
  return std::exchange(kept_, std::nullopt);
}

}  // namespace graft
