// src/torch/device/current.cpp: the calling thread's current device and its current stream on each
// device.
#include "torch/device/current.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <mutex>
#include <set>

#include "runtime/driver/error.h"
#include "runtime/driver/fork.h"
#include "runtime/platform/platform.h"
#include "torch/device/drivers.h"

namespace graft::binding {

namespace detail {
thread_local constinit Current current;
}

namespace {

// In a forked child the streams are gone: the next use asks the platform, which says so.
void forget_own_streams() {
  for (auto& stream : detail::current.streams) stream.store(nullptr, std::memory_order_relaxed);
}

[[maybe_unused]] const int watches_forks = pthread_atfork(nullptr, nullptr, &forget_own_streams);

// The threads that have current streams.
struct Threads {
  std::mutex mutex;
  std::set<detail::Current*> all;  // guarded by mutex
};

Threads& threads() {
  static auto* const the_threads = new Threads;  // threads end after static objects
  return *the_threads;
}

// Counts the calling thread among them until it ends.
struct Member {
  Member() {
    const std::lock_guard lock(threads().mutex);
    threads().all.insert(&detail::current);
  }
  ~Member() {
    const std::lock_guard lock(threads().mutex);
    threads().all.erase(&detail::current);
  }
};

void join_threads() {
  if (forked_child()) return;  // the lock may be held for good
  [[maybe_unused]] static thread_local const Member member;
}

}  // namespace

int device_count() noexcept {
  const int count = platform().device_count();
  warn_of_refusals();
  return count;
}

void check_index(int64_t index) {
  const int count = device_count();
  if (index >= Platform::kFirstCarried &&
      index < Platform::kFirstCarried + platform().carried_count()) {
    return;
  }
  TORCH_CHECK(index >= 0 && index < count, "there is no device ", device_name(), ":", index, ": ",
              count, count == 1 ? " device was" : " devices were", " found",
              count == 0 ? ". Name a driver in GRAFT_DRIVER_PATH; " : "; ",
              "`python -m torch_graft doctor` tells more.");
}

Device& device_at(int64_t index) {
  check_index(index);
  return platform().device(static_cast<int>(index));
}

c10::DeviceIndex usable_device() {
  if (detail::current.streams[current_device()] != nullptr) return current_device();
  const bool counted = platform().device_count() > 0 || platform().carried_count() == 0;
  if (counted || current_device() >= Platform::kFirstCarried) return current_device();
  return static_cast<c10::DeviceIndex>(platform().carried_index(0));
}

void set_current_device_unchecked(c10::DeviceIndex index) noexcept {
  if (index >= 0) detail::current.device = index;
}

void set_current_device(c10::DeviceIndex index) {
  if (index < 0 || index == detail::current.device) return;
  check_index(index);
  detail::current.device = index;
}

Stream& detail::open_current_stream(c10::DeviceIndex index) {
  index = resolve(index);
  check_index(index);
  join_threads();
  std::atomic<Stream*>& stream = current.streams[index];
  if (stream.load() == nullptr) stream.store(&platform().device(index).default_stream());
  return *stream.load();
}

Stream& runtime_stream(const c10::Stream& stream) {
  return platform().device(resolve(stream.device_index())).stream(stream.id());
}

c10::Stream torch_stream(const Stream& stream) {
  const auto index = static_cast<c10::DeviceIndex>(stream.device().index());
  return c10::Stream(c10::Stream::UNSAFE, device_of(index), stream.id());
}

void forget_streams(c10::DeviceIndex index) {
  const std::lock_guard lock(threads().mutex);
  for (detail::Current* const thread : threads().all) thread->streams[index].store(nullptr);
}

Stream& exchange_stream(Stream& stream) {
  const auto index = static_cast<c10::DeviceIndex>(stream.device().index());
  Stream& before = current_stream(index);
  detail::current.streams[index] = &stream;
  return before;
}

}  // namespace graft::binding
