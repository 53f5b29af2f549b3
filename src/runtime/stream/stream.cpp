// src/runtime/stream/stream.cpp: a queue of commands on a device.
#include "runtime/stream/stream.h"

#include <algorithm>
#include <memory>

#include "runtime/driver/fork.h"
#include "runtime/driver/op_trace.h"
#include "runtime/memory/write_epochs.h"
#include "runtime/stream/device.h"
#include "runtime/stream/event.h"

namespace graft {
namespace {

constexpr uint64_t kStagedBytes = 16 << 20;

// Inlined here, where an exported member could be replaced and is not.
inline void refuse(const Device& device) {
  if (__builtin_expect(!device.usable() || forked_child(), 0)) device.refuse_unusable();
}

void run_callback(void* context) {
  const std::unique_ptr<std::function<void()>> function(
      static_cast<std::function<void()>*>(context));
  try {
    (*function)();
  } catch (...) {
  }
}

}  // namespace

Stream::Stream(Device& device, int64_t id, int priority)
    : device_(device), id_(id), priority_(priority), table_(device.driver().table()) {
  device.check(Driver::call(table_.stream_create, device.handle(), priority, &handle_),
               "stream_create");
  if (handle_ == nullptr) {
    throw Error(GRAFT_INTERNAL, device.label() + ": stream_create returned OK but no stream");
  }
}

Stream::~Stream() {
  if (forked_child()) {
    static_cast<void>(idle_mark_.release());
    return;
  }
  close();
}

void Stream::close() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_mark_.reset();
  if (handle_ != nullptr) Driver::call(table_.stream_destroy, std::exchange(handle_, nullptr));
}

void Stream::refuse_unusable() const { refuse(device_); }

void Stream::refused(std::unique_lock<std::mutex>& lock, graft_status status,
                     std::string_view what) {
  lock.unlock();
  device_.check(status, what);
  __builtin_unreachable();
}

void Stream::copy(uint64_t to, uint64_t from, uint64_t bytes, graft_copy_kind kind) {
  const TracedCall traced(*this, current_tag(), {TracedKind::kCopy, bytes, kind});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if (recording_ != nullptr) {
    if (bytes != 0) recording_->add_copy(to, from, bytes, kind, traced.tag());
    return;
  }
  if (kind == GRAFT_DEVICE_TO_HOST && kept_) throw_kept(lock);
  if (bytes == 0) return;
  const graft_status status = Driver::call_locked(table_.copy, handle_, to, from, bytes,
                                                  static_cast<uint32_t>(kind), traced.tag());
  if (status != GRAFT_OK) refused(lock, status, "copy");
  ops_.add(traced.tag());
  count(counts_.copies, 1);
  count(counts_.copied_bytes, bytes);
  if (writes_are_watched() && kind != GRAFT_DEVICE_TO_HOST) note_write(device_, to);
  if (CommandCapture* const capture = CommandCapture::current(*this)) {
    if (kind != GRAFT_DEVICE_TO_DEVICE) capture->spoil();
    capture->commands.add_copy(to, from, bytes, kind, traced.tag());
  }
}

void Stream::peer_copy(graft_address to, Device& from_device, graft_address from, uint64_t bytes) {
  if (&from_device == &device_) return copy(to, from, bytes, GRAFT_DEVICE_TO_DEVICE);
  if (bytes == 0) return;
  if (table_.peer_copy != nullptr && &from_device.driver() == &device_.driver()) {
    const TracedCall traced(*this, current_tag(), {TracedKind::kCopy, bytes});
    command("peer_copy", [&] {
      count(counts_.copies, 1);
      count(counts_.copied_bytes, bytes);
      return Driver::call_locked(table_.peer_copy, handle_, to, from_device.handle(), from, bytes,
                                 traced.tag());
    });
    if (writes_are_watched()) note_write(device_, to);
    return;
  }
  refuse_recording("a copy between devices without peer_copy");
  synchronize();
  Stream& other = from_device.stream_from_pool(0);
  PinnedAllocator& staging = device_.pinned_allocator();
  for (uint64_t done = 0; done < bytes; done += kStagedBytes) {
    const uint64_t part = std::min(bytes - done, kStagedBytes);
    const auto give_back = [&](PinnedBlock* block) { staging.free(block); };
    std::unique_ptr<PinnedBlock, decltype(give_back)> block(staging.allocate(part), give_back);
    const auto host = reinterpret_cast<uintptr_t>(block->pointer);
    staging.record_stream(block.get(), other);  // the wait for it may end early
    other.copy(host, from + done, part, GRAFT_DEVICE_TO_HOST);
    other.synchronize();
    staging.record_stream(block.get(), *this);
    copy(to + done, host, part, GRAFT_HOST_TO_DEVICE);
  }
}

void Stream::fill(graft_address to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes) {
  if (bytes == 0) return;
  const TracedCall traced(*this, current_tag(), {TracedKind::kFill, bytes});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if (recording_ != nullptr) {
    return recording_->add_fill(to, bytes, pattern, pattern_bytes, traced.tag());
  }
  const graft_status status =
      Driver::call_locked(table_.fill, handle_, to, bytes, pattern, pattern_bytes, traced.tag());
  if (status != GRAFT_OK) refused(lock, status, "fill");
  ops_.add(traced.tag());
  count(counts_.fills, 1);
  count(counts_.filled_bytes, bytes);
  if (writes_are_watched()) note_write(device_, to);
  if (CommandCapture* const capture = CommandCapture::current(*this)) {
    capture->commands.add_fill(to, bytes, pattern, pattern_bytes, traced.tag());
  }
}

void Stream::launch(graft_kernel kernel, uint64_t grid, std::span<const graft_argument> arguments) {
  graft_launch one{};
  one.grid[0] = grid;
  one.grid[1] = one.grid[2] = 1;
  one.group[0] = one.group[1] = one.group[2] = 1;
  one.argument_count = static_cast<uint32_t>(arguments.size());
  one.arguments = arguments.data();
  launch(kernel, one);
}

void Stream::launch(graft_kernel kernel, const graft_launch& launch) {
  graft_launch tagged = launch;
  tagged.struct_size = sizeof(tagged);
  const TracedCall traced(*this, tagged.tag == 0 ? current_tag() : tagged.tag,
                          {TracedKind::kLaunch, 0, GRAFT_DEVICE_TO_DEVICE, kernel});
  tagged.tag = traced.tag();
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if (__builtin_expect(recording_ != nullptr, 0)) return recording_->add_launch(kernel, tagged);
  const graft_status status =
      table_.kernel_launch == nullptr
          ? GRAFT_UNSUPPORTED
          : Driver::call_locked(table_.kernel_launch, handle_, kernel, &tagged);
  if (__builtin_expect(status != GRAFT_OK, 0)) refused(lock, status, "kernel_launch");
  ops_.add(tagged.tag);
  count(counts_.launches, 1);
  if (writes_are_watched()) note_launch(device_, tagged);
  if (CommandCapture* const capture = CommandCapture::current(*this)) {
    capture->commands.add_launch(kernel, tagged);
  }
}

void Stream::execute(LibraryCommand command) {
  const TracedCall traced(*this, current_tag(), {});
  command.execution.tag = traced.tag();
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if (__builtin_expect(recording_ != nullptr, 0)) {
    return recording_->add_library(std::move(command));
  }
  const graft_status status =
      Driver::call_locked(command.run, handle_, command.plan, &command.execution);
  if (__builtin_expect(status != GRAFT_OK, 0)) refused(lock, status, "plan_execute");
  ops_.add(command.execution.tag);
  count(counts_.launches, 1);
  if (writes_are_watched()) note_write(device_, command.written);
  if (CommandCapture* const capture = CommandCapture::current(*this)) {
    capture->commands.add_library(std::move(command));
  }
}

void Stream::wait(Event& event) {
  if (const std::shared_ptr<Recording> other = event.recording()) {
    if (recording() == other || other->ended()) return;
    return begin_recording(other);
  }
  if (!event.recorded()) return;
  const bool same_driver = &event.device().driver() == &device_.driver();
  if (table_.stream_wait_event == nullptr || !same_driver) return event.synchronize();
  command("stream_wait_event",
          [&] { return Driver::call_locked(table_.stream_wait_event, handle_, event.handle()); });
  if (Stream* other = event.stream()) concerns_.take_over(other->concerns_);
}

void Stream::callback(std::function<void()> function) {
  auto owned = std::make_unique<std::function<void()>>(std::move(function));
  refuse_recording("a host callback");
  if (table_.host_callback == nullptr) {
    refuse(device_);
    settle_or_throw();
    run_callback(owned.release());
    return;
  }
  command("host_callback", [&] {
    const graft_status status =
        Driver::call_locked(table_.host_callback, handle_, &run_callback, owned.get());
    if (status == GRAFT_OK) static_cast<void>(owned.release());
    return status;
  });
}

bool Stream::native_handle(uint64_t* out_handle) {
  if (table_.stream_native_handle == nullptr) return false;
  distrust_device(device_);
  command("stream_native_handle",
          [&] { return Driver::call_locked(table_.stream_native_handle, handle_, out_handle); });
  return true;
}

uint64_t Stream::mark(graft_event event) {
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  refuse_recording("event_record");
  const graft_status status = Driver::call_locked(table_.event_record, event, handle_);
  if (__builtin_expect(status != GRAFT_OK, 0)) refused(lock, status, "event_record");
  return ops_.added();
}

void Stream::arm(Check check, void* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recording_ != nullptr) return recording_->add_check(check, context);
  if (CommandCapture* const capture = CommandCapture::current(*this)) {
    capture->checks.emplace_back(check, context);
  }
  check_ = check;
  check_context_ = context;
}

void Stream::throw_recording(std::string_view what) const {
  throw Error(GRAFT_INVALID_ARGUMENT,
              std::string(what) + " is not possible while a stream of " + device_.name() +
                  " captures a graph: nothing runs before the graph is replayed. Move the call "
                  "out of the capture.");
}

void Stream::begin_recording(const std::shared_ptr<Recording>& recording) {
  if (&recording->device() != &device_) throw_recording("work of another device");
  {
    const std::lock_guard lock(mutex_);
    refuse(device_);
    if (recording_ == nullptr) {
      recording->join(*this);
      recording_ = recording;
      memory_pool_.store(recording->pool(), std::memory_order_release);
      return;
    }
  }
  throw_recording("another capture on the same stream");
}

void Stream::end_recording() {
  const std::shared_ptr<Recording> recording = this->recording();
  if (recording == nullptr) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "No capture runs on this stream of " + device_.name() + ": begin one first.");
  }
  for (Stream* stream : recording->end()) stream->leave_recording();
}

void Stream::leave_recording() {
  const std::lock_guard lock(mutex_);
  recording_.reset();
  memory_pool_.store(0, std::memory_order_release);
}

std::shared_ptr<Recording> Stream::recording() const {
  if (__builtin_expect(memory_pool() == 0, 1)) return nullptr;
  const std::lock_guard lock(mutex_);
  return recording_;
}

void Stream::replay(Recording& recording) {
  refuse_recording("replaying a graph");
  const TracedCall traced(*this, current_tag(), {TracedKind::kReplay});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  for (const auto& [check, context] : recording.checks()) {
    check_ = check;
    check_context_ = context;
  }
  std::string_view slot;
  const graft_status status = recording.run(table_, *this, &slot);
  if (status != GRAFT_OK) refused(lock, status, slot);
  ops_.add(traced.tag());
  count(recording.counts());
}

void Stream::give(CommandList& commands, std::span<const std::pair<Check, void*>> checks) {
  refuse_recording("replaying commands");
  const TracedCall traced(*this, current_tag(), {TracedKind::kReplay});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  for (const auto& [check, context] : checks) {
    check_ = check;
    check_context_ = context;
  }
  std::string_view slot;
  const graft_status status = commands.give(table_, device_, handle_, &slot);
  if (status != GRAFT_OK) refused(lock, status, slot);
  ops_.add(traced.tag());
  count(commands.counts());
}

void Stream::count(const CommandCounts& more) {
  count(counts_.launches, more.launches);
  count(counts_.copies, more.copies);
  count(counts_.copied_bytes, more.copied_bytes);
  count(counts_.fills, more.fills);
  count(counts_.filled_bytes, more.filled_bytes);
  count(counts_.graphs, more.graphs);
  count(counts_.in_graphs, more.in_graphs);
}

CommandCounts Stream::counts() const {
  const auto read = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {read(counts_.launches),    read(counts_.graphs),       read(counts_.in_graphs),
          read(counts_.copies),      read(counts_.copied_bytes), read(counts_.fills),
          read(counts_.filled_bytes)};
}

}  // namespace graft
