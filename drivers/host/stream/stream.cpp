// drivers/host/stream/stream.cpp: a queue of commands with a worker of its own.
#include "stream.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <new>
#include <system_error>
#include <unordered_set>

#include "graft/driver_slot.h"
#include "process_end.h"

namespace {

// Up to some 100 us of work: waking a worker and being woken by it costs 5 to 20.
constexpr uint64_t kSmallBytes = 4 << 20;
constexpr int kNicePerPriority = 5;
// With compute=skip, what is smaller still runs: sizes, counters and flags that a program looks at.
constexpr uint64_t kSkippedBytes = 64 << 10;

// Every stream that is not destroyed.
struct LiveStreams {
  std::mutex mutex;
  std::unordered_set<graft_stream> all;  // guarded by mutex, as their owners
};

LiveStreams& live_streams() {
  static auto* const instance = new LiveStreams;
  return *instance;
}

// Whether that was the last one.
bool drop_owner(graft_stream stream) {
  LiveStreams& live = live_streams();
  const std::lock_guard lock(live.mutex);
  if (--stream->owners != 0) return false;
  live.all.erase(stream);
  return true;
}

}  // namespace

graft_stream_s::graft_stream_s(graft_device device, int32_t priority)
    : device(device), priority(priority), failure(std::make_shared<graft::Failure>()) {}

graft_stream_s::~graft_stream_s() {
  if (!worker.joinable()) return;
  queue.wait_idle();
  queue.stop();
  worker.join();
}

void graft_stream_s::start() {
  static std::once_flag first;
  std::call_once(first, graft::host::watch_process_end);
  worker = std::thread(&graft_stream_s::work, this);
}

void graft_stream_s::work() {
  pthread_setname_np(pthread_self(), "graft-stream");
  // Raising the priority needs a right that few processes have; then it stays as it is.
  if (priority != 0) {
    setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), priority * kNicePerPriority);
  }
  while (graft::host::Command* command = queue.front()) {
    bool skip = device->lost.load(std::memory_order_relaxed) && !command->survives();
    uint32_t tag = command->tag();
    if (command->survives()) {
      note(command->run(skip), tag);
    } else {
      const graft::host::RunningCommand running;
      const graft::host::TracedRun traced(this, tag);
      note(command->run(skip), tag);
    }
    queue.pop();
  }
}

graft_status graft_stream_s::admit() {
  using graft::host::detours;
  if (detours.load(std::memory_order_relaxed) == 0) return GRAFT_OK;
  if (graft::host::strikes(graft::host::Fault::kLost)) {
    device->lost.store(true);
    detours.fetch_or(graft::host::kDetourLost);
  }
  return graft::host::check_device(device);
}

// The worker is lost to the stream: an ending process stops it, nothing joins it.
graft_status graft_stream_s::hang(uint32_t tag) {
  if (graft_status status = admit(); status != GRAFT_OK) return status;
  push(tag, false, []() -> graft::host::Outcome { graft::host::stop_for_good(); });
  return GRAFT_OK;
}

bool graft_stream_s::runs_here(uint64_t bytes) const {
  graft::host::Mode mode = graft::host::settings().mode;
  if (mode == graft::host::Mode::kAsync || !queue.idle()) return false;
  return mode == graft::host::Mode::kInline || bytes <= kSmallBytes;
}

void graft_stream_s::note(const graft::host::Outcome& outcome, uint32_t tag) {
  if (outcome.status != GRAFT_OK) failure->set({outcome.status, tag, outcome.text});
}

namespace graft::host {

bool is_skipped(uint64_t bytes) { return simulation().skip && bytes > kSkippedBytes; }

graft_status StreamSlots::stream_create(graft_device device, int32_t priority, graft_stream* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_create: no out pointer given");
  if (priority < -1 || priority > 1) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_create: priorities go from 1 (low) to -1 (high)");
  }
  if (strikes(Fault::kStream)) return fail(GRAFT_INTERNAL, "planted by GRAFT_HOST_FAULTS");
  auto stream = std::make_unique<graft_stream_s>(device, priority);
  LiveStreams& live = live_streams();
  const std::lock_guard lock(live.mutex);
  live.all.insert(stream.get());
  *out = stream.release();
  return GRAFT_OK;
}

graft_status StreamSlots::stream_wrap(graft_device device, uint64_t native_handle,
                                      graft_stream* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_wrap: no out pointer given");
  LiveStreams& live = live_streams();
  const std::lock_guard lock(live.mutex);
  const auto found = live.all.find(reinterpret_cast<graft_stream>(native_handle));
  if (found == live.all.end() || (*found)->device->ordinal != device->ordinal) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_wrap: the handle is no stream of the device");
  }
  ++(*found)->owners;
  *out = *found;
  return GRAFT_OK;
}

graft_status StreamSlots::stream_destroy(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_destroy: no stream given");
  // The worker did not survive the fork, so it cannot be joined.
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) return GRAFT_OK;
  if (drop_owner(stream)) {
    delete stream;
  } else {
    stream->queue.wait_idle();
  }
  return GRAFT_OK;
}

graft_status StreamSlots::stream_synchronize(graft_stream stream) {
  return stream_synchronize_within(stream, SleepLimit::kForever);
}

graft_status StreamSlots::stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_synchronize: no stream given");
  const bool forked = (detours.load(std::memory_order_relaxed) & kDetourForked) != 0;
  if (!forked && !stream->queue.wait_idle(timeout_ns)) return GRAFT_BUSY;
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  if (simulated()) host_waited(stream->clock.now());
  return stream->failure->take();
}

graft_status StreamSlots::stream_query(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_query: no stream given");
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  if (!stream->queue.settled()) return GRAFT_BUSY;
  if (simulated() && stream->clock.now() > host_time()) {
    host_asked();
    return GRAFT_BUSY;
  }
  return stream->failure->take();
}

graft_status StreamSlots::stream_native_handle(graft_stream stream, uint64_t* out_handle) {
  if (stream == nullptr || out_handle == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_native_handle: no stream or no out pointer given");
  }
  *out_handle = reinterpret_cast<uintptr_t>(stream);
  return GRAFT_OK;
}

graft_status StreamSlots::stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                       size_t capacity) {
  if (stream == nullptr || out_tag == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_error: no stream or no out pointer given");
  }
  LateError error = stream->failure->taken();
  *out_tag = error.tag;
  copy_text(error.text, out_text, capacity);
  return GRAFT_OK;
}

graft_status StreamSlots::host_callback(graft_stream stream, void (*function)(void* context),
                                        void* context) {
  if (stream == nullptr || function == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "host_callback: no stream or no function given");
  }
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  // Never on the calling thread: it may hold a lock that the callback takes.
  stream->push(0, true, [function, context] {
    function(context);
    return Outcome{};
  });
  return GRAFT_OK;
}

}  // namespace graft::host
