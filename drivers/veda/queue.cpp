// drivers/veda/queue.cpp: the commands of one of Graft's streams, on a thread that gives them to
// VEDA.
#include "queue.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "device.h"

namespace graft::veda {
namespace {

// VEDA keeps a record of each until it is waited for.
constexpr size_t kMostTogether = 128;

template <class Predicate>
bool wait_on(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
             uint64_t timeout_ns, Predicate predicate) {
  return changed.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kForever)),
                          predicate);
}

}  // namespace

void Mark::pass() {
  std::lock_guard lock(mutex_);
  error_ = source->peek();
  time_ns_ = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  is_passed_ = true;
  changed_.notify_all();
}

bool Mark::is_passed() const {
  std::lock_guard lock(mutex_);
  return is_passed_;
}

bool Mark::wait(uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  return wait_on(changed_, lock, timeout_ns, [this] { return is_passed_; });
}

Queue::Queue(Lane& lane) : lane_(lane), thread_(&Queue::serve, this) {}

Queue::~Queue() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Queue::push(std::unique_ptr<Work> work) { add({std::move(work), nullptr, nullptr}); }

void Queue::push(std::shared_ptr<Mark> mark) { add({nullptr, std::move(mark), nullptr}); }

void Queue::push(std::function<void()> function) { add({nullptr, nullptr, std::move(function)}); }

void Queue::add(Command command) {
  std::lock_guard lock(mutex_);
  // Whoever sees the mark passed finds the stream idle, and the other way round.
  if (command.mark != nullptr && left_ == 0) return command.mark->pass();
  commands_.push_back(std::move(command));
  ++left_;
  changed_.notify_all();
}

bool Queue::is_idle() const {
  std::lock_guard lock(mutex_);
  return left_ == 0;
}

bool Queue::wait(uint64_t timeout_ns) const {
  std::unique_lock lock(mutex_);
  return wait_on(changed_, lock, timeout_ns, [this] { return left_ == 0; });
}

void Queue::serve() {
  pthread_setname_np(pthread_self(), "graft-veda");
  const Called called = GRAFT_VEDA_CALL(CtxSetCurrent, lane_.device->context);
  if (!called.ok()) lane_.device->lose(called.text() + ": starting a stream");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !commands_.empty(); });
    if (commands_.empty()) return;
    size_t done = 1;
    if (commands_.front().work != nullptr) {
      Batch batch = take_work();
      done = batch.size();
      lock.unlock();
      run(batch);
      lock.lock();
    } else {
      const Command command = std::move(commands_.front());
      commands_.pop_front();
      if (command.mark != nullptr) {
        command.mark->pass();
      } else {
        lock.unlock();
        command.function();
        lock.lock();
      }
    }
    left_ -= done;
    if (left_ == 0) changed_.notify_all();
  }
}

Queue::Batch Queue::take_work() {
  Batch batch;
  while (batch.size() < kMostTogether && !commands_.empty() && commands_.front().work != nullptr) {
    const bool alone = commands_.front().work->other_device() != nullptr;
    if (alone && !batch.empty()) break;
    batch.push_back(std::move(commands_.front().work));
    commands_.pop_front();
    if (alone) break;
  }
  return batch;
}

void Queue::run(Batch& batch) {
  const graft_device other = batch.front()->other_device();
  Lane* second = other != nullptr ? &other->lanes.first() : nullptr;
  if (second == nullptr || second == &lane_) {
    std::lock_guard lock(lane_.mutex);
    run_locked(batch);
  } else {
    std::scoped_lock lock(lane_.mutex, second->mutex);
    run_locked(batch);
  }
}

void Queue::run_locked(Batch& batch) {
  size_t issued = 0;
  for (const std::unique_ptr<Work>& work : batch) {
    if (lane_.device->is_lost()) break;
    const Called called = work->issue(lane_.stream);
    if (called.ok()) {
      ++issued;
    } else {
      note(*work, called, "");
    }
  }
  if (issued == 0 || lane_.device->is_lost()) return;
  bool is_over = true;
  const Called end = lane_.drain(issued, &is_over);
  if (end.ok()) return;
  const auto found =
      std::find_if(batch.begin(), batch.end(), [](const auto& work) { return !work->has_ended(); });
  const Work& failed = found != batch.end() ? **found : *batch.back();
  const std::string also = batch.size() == 1 ? "" : ", or one of the commands after it";
  if (!is_over) {
    lane_.device->lose(end.text() + ": " + failed.text() + " failed" + also +
                       ", and VEDA's stream cannot go on after a failure");
  }
  note(failed, end, also);
  if (!lane_.device->is_lost()) return;
  for (std::unique_ptr<Work>& work : batch) lane_.abandoned.push_back(std::move(work));
}

void Queue::note(const Work& work, const Called& called, const std::string& also) {
  const std::string text = work.text() + " failed" + also;
  const graft_status status = lane_.failed(called, text, GRAFT_LAUNCH_FAILED);
  failure->set({status, work.tag, called.text() + ": " + text});
}

}  // namespace graft::veda
