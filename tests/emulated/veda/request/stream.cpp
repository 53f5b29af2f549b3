// tests/emulated/veda/request/stream.cpp: one queue of requests, done in order by a thread of the
// host.
#include "tests/emulated/veda/request/stream.h"

#include "tests/emulated/veda/library/entry.h"

namespace emulated {

Stream::Stream(std::unique_ptr<Channel> channel, const Settings& settings,
               std::shared_ptr<std::atomic<bool>> lost)
    : link_(std::move(channel), settings),
      keep_failed_(settings.keep_failed != 0),
      most_calls_(static_cast<std::size_t>(settings.requests)),
      lost_(std::move(lost)),
      thread_([this] { serve(); }) {}

Stream::~Stream() { stop(); }

void Stream::enqueue(Work work, Handling handling) {
  auto call = std::make_shared<Call>();
  call->work = std::move(work);
  call->handling = std::move(handling);
  {
    const std::lock_guard lock(mutex_);
    require(!stopping_, VEDA_ERROR_CONTEXT_IS_DESTROYED);
    require(!lost_->load(), VEDA_ERROR_INVALID_REQID);
    require(most_calls_ == 0 || calls_.size() < most_calls_, VEDA_ERROR_INVALID_REQID);
  }
  if (call->handling.record) call->handling.record->tell(VEDA_PROFILER_EVENT_ISSUE);
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
    waiting_.push_back(call);
    if (stopping_) give_up(call.get());
  }
  changed_.notify_all();
}

void Stream::give_up(Call* call) {
  call->work = nullptr;
  call->outcome.status = VEDA_ERROR_VEO_COMMAND_ERROR;
  call->done = true;
}

Outcome Stream::perform(Call* call) {
  if (lost_->load()) return {VEDA_ERROR_VEO_COMMAND_ERROR, 0};
  const auto record = call->handling.record;
  try {
    if (record) record->tell(VEDA_PROFILER_EVENT_BEGIN);
    const Outcome outcome = call->work(link_);
    if (record) record->tell(VEDA_PROFILER_EVENT_END);
    return outcome;
  } catch (const Lost&) {
    lost_->store(true);
    return {VEDA_ERROR_VEO_COMMAND_EXCEPTION, 0};
  }
}

void Stream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) break;
    const std::shared_ptr<Call> call = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    const Outcome outcome = perform(call.get());
    call->work = nullptr;
    lock.lock();
    call->outcome = outcome;
    call->done = true;
    changed_.notify_all();
  }
  for (const auto& call : waiting_) give_up(call.get());
  waiting_.clear();
  changed_.notify_all();
}

VEDAresult Stream::report(Call* call) {
  if (call->reported) return VEDA_ERROR_VEO_COMMAND_ERROR;
  call->reported = true;
  if (call->outcome.status != VEDA_SUCCESS) return call->outcome.status;
  if (call->handling.result != nullptr) *call->handling.result = call->outcome.value;
  return call->handling.value_is_code ? static_cast<VEDAresult>(call->outcome.value) : VEDA_SUCCESS;
}

VEDAresult Stream::synchronize() {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Call> last = calls_.empty() ? nullptr : calls_.back();
  while (last && !calls_.empty()) {
    const std::shared_ptr<Call> call = calls_.front();
    changed_.wait(lock, [&] { return call->done; });
    if (calls_.empty() || calls_.front() != call) continue;  // another thread took it
    const VEDAresult result = report(call.get());
    if (result == VEDA_SUCCESS || !keep_failed_) calls_.pop_front();
    if (result != VEDA_SUCCESS) return result;
    if (call == last) break;
  }
  return VEDA_SUCCESS;
}

void Stream::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  link_.shut_down();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace emulated
