// src/runtime/stream/stream.cpp: a queue of commands on a device.
#include "runtime/stream/stream.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/op_trace.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/event.h"
#include "runtime/stream/op_runs.h"
#include "runtime/stream/write_epochs.h"

namespace graft {
namespace {

// Inlined here, where an exported member could be replaced and is not.
inline void refuse(const OpenDevice& device) {
  if (__builtin_expect(!device.usable() || forked_child(), 0)) device.refuse_unusable();
}

graft_stream create(OpenDevice& device, int priority) {
  graft_stream handle = nullptr;
  device.check(
      Driver::call(device.driver().table().stream_create, device.handle(), priority, &handle),
      "stream_create");
  if (handle != nullptr) return handle;
  throw Error(GRAFT_INTERNAL, device.label() + ": stream_create returned OK but no stream");
}

// Of a replay each command counts.
template <class Kind>
void note_run(Kind& command) {
  const auto op = [&] { return op_name(base_tag(command.tag())); };
  if constexpr (std::is_same_v<Kind, OperationCommand>) {
    add_run(op(), RunKind::kVendor);
  } else if constexpr (std::is_same_v<Kind, LibraryCommand>) {
    add_run(op(), RunKind::kLibrary);
  } else if constexpr (std::is_same_v<Kind, LaunchCommand>) {
    add_run(op(), RunKind::kGenerated);
  } else if constexpr (std::is_same_v<Kind, ReplayCommand>) {
    command.list.each([](auto& one) { note_run(one); });
  }
}

}  // namespace

Stream::Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, int priority)
    : Stream(siblings, allocator, id, create(siblings.device(), priority), priority) {}

Stream::Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, graft_stream handle)
    : Stream(siblings, allocator, id, handle, 0) {}

Stream::Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, graft_stream handle,
               int priority)
    : device_(siblings.device()),
      siblings_(siblings),
      allocator_(allocator),
      id_(id),
      priority_(priority),
      handle_(handle),
      table_(device_.driver().table()),
      wait_(device_, handle_, ops_),
      late_(device_) {}

Stream::~Stream() { forked_child() ? wait_.forget() : close(); }

void Stream::close() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  wait_.close();
  if (handle_ != nullptr) Driver::call(table_.stream_destroy, std::exchange(handle_, nullptr));
}

void Stream::refuse_unusable() const { refuse(device_); }

void Stream::refused(std::unique_lock<std::mutex>& lock, graft_status status,
                     std::string_view what) {
  lock.unlock();
  device_.check(status, what);
  __builtin_unreachable();
}

template <class Kind>
[[gnu::always_inline]] inline void Stream::give(std::unique_lock<std::mutex>& lock, Kind& command) {
  const graft_status status = command.give(table_, handle_);
  if (writes_are_watched()) {
    command.each_address([&](const uint64_t* address, bool written) {
      if (written) note_write(device_, *address);
    });
  }
  if (__builtin_expect(status != GRAFT_OK, 0)) refused(lock, status, command.slot());
  if (runs_are_counted()) [[unlikely]]
    note_run(command);
  ops_.add(command.tag());
  command.count(counts_);
}

template <class Kind>
[[gnu::always_inline]] inline void Stream::submit(Kind&& command) {
  constexpr bool kKept = std::is_constructible_v<Command, Kind>;
  const TracedCall traced(*this, command.tag(), command.traced());
  command.tag() = traced.tag();
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if constexpr (std::is_same_v<Kind, CopyCommand>) {
    const bool tells = command.kind == GRAFT_DEVICE_TO_HOST && recording_ == nullptr;
    if (tells && late_.any()) throw_kept(lock);
    if (command.bytes == 0) return;
  }
  if constexpr (!kKept) {
    refuse_recording(command.slot());
  } else if (__builtin_expect(recording_ != nullptr, 0)) {
    return recording_->add(std::forward<Kind>(command));
  }
  if constexpr (std::is_same_v<Kind, ReplayCommand>) {
    if (!command.list.checks().empty()) check_ = command.list.checks().back();
  }
  give(lock, command);
  if constexpr (kKept) {
    if (CommandCapture* const capture = CommandCapture::current(*this)) {
      capture->add(std::forward<Kind>(command));
    }
  }
}

void Stream::copy(uint64_t to, uint64_t from, uint64_t bytes, graft_copy_kind kind) {
  submit(CopyCommand{to, from, bytes, kind});
}

bool Stream::copy_rows(const graft_strided_copy& rows) {
  if (table_.copy_strided == nullptr || memory_pool() != 0) return false;
  const uint64_t bytes = rows.row_bytes * rows.counts[0] * rows.counts[1] * rows.counts[2];
  const auto kind = static_cast<graft_copy_kind>(rows.kind);
  const bool on_host = kind == GRAFT_DEVICE_TO_HOST;
  bool taken = true;
  const auto give = [&](uint32_t tag) {
    const graft_status status = Driver::call_locked(table_.copy_strided, handle_, &rows, tag);
    taken = status != GRAFT_UNSUPPORTED;
    return taken ? status : GRAFT_OK;
  };
  command("copy_strided", give,
          {{TracedKind::kCopy, bytes, kind}, on_host ? 0 : rows.to, bytes, &taken});
  return taken;
}

void Stream::fill(graft_address to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes) {
  if (bytes != 0) submit(FillCommand{to, bytes, pattern, pattern_bytes});
}

void Stream::launch(graft_kernel kernel, uint64_t grid, const LaunchArguments& arguments,
                    uint32_t group) {
  submit(LaunchCommand(kernel, grid, arguments, group));
}

void Stream::execute(LibraryCommand command) {
  command.tag() = current_tag();
  submit(std::move(command));
}
void Stream::execute(ExecutableCommand command) {
  command.tag() = current_tag();
  submit(std::move(command));
}
void Stream::execute(OperationCommand command) { submit(std::move(command)); }
void Stream::call(SlotCall call) { submit(SlotCall(call)); }
void Stream::replay(CommandList& commands, ReplayCommand::Before before) {
  submit(ReplayCommand{commands, std::move(before)});
}

void Stream::wait(Event& event) {
  if (const std::shared_ptr<Recording> other = event.recording()) {
    if (recording() == other || other->ended()) return;
    return begin_recording(other);
  }
  if (!event.recorded()) return;
  if (event.device().lost()) throw event.device().unusable_error();
  const bool same_driver = &event.device().driver() == &device_.driver();
  if (table_.stream_wait_event == nullptr || !same_driver) return event.synchronize();
  command("stream_wait_event", [&](uint32_t) {
    return Driver::call_locked(table_.stream_wait_event, handle_, event.handle());
  });
  if (Stream* other = event.stream()) concerns_.take_over(other->concerns_);
}

bool Stream::native_handle(uint64_t* out_handle) {
  if (table_.stream_native_handle == nullptr) return false;
  distrust_device(device_);
  command("stream_native_handle", [&](uint32_t) {
    return Driver::call_locked(table_.stream_native_handle, handle_, out_handle);
  });
  given_handle_.store(*out_handle, std::memory_order_relaxed);
  return true;
}

void Stream::wait_and_finish() {
  const TracedCall traced(*this, current_tag(), {TracedKind::kWait});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse_unusable();
  finish_wait(lock, wait_.wait(lock));
}

void Stream::synchronize() {
  refuse_recording("waiting for the device");
  wait_and_finish();
}

void Stream::read(void* to, graft_address from, uint64_t bytes) {
  refuse_recording("reading a number of the device");
  LandingMemory landing(bytes);
  const auto host = reinterpret_cast<uintptr_t>(landing.get());
  try {
    if (command_trace_state::on.load(std::memory_order_relaxed)) [[unlikely]] {
      copy(host, from, bytes, GRAFT_DEVICE_TO_HOST);
      wait_and_finish();
    } else {  // the same under one lock
      std::unique_lock<std::mutex> lock(mutex_);
      refuse(device_);
      if (late_.any()) throw_kept(lock);
      CopyCommand command{host, from, bytes, GRAFT_DEVICE_TO_HOST};
      give(lock, command);
      finish_wait(lock, wait_.wait(lock));
    }
  } catch (...) {
    if (given_up()) keep_alive(landing.hand_over());
    throw;
  }
  std::memcpy(to, landing.get(), bytes);
}

void Stream::settle_or_throw() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (const graft_status status = wait_.wait(lock); status != GRAFT_OK) late_.keep(handle_, status);
  lock.unlock();
  kept_memory_.release(ops_, mutex_);
}

bool Stream::settle() noexcept {
  if (forked_child() || device_.lost()) return true;
  if (!device_.usable()) return false;
  try {
    settle_or_throw();
    return true;
  } catch (const Error&) {  // GRAFT_TIMEOUT: who waits next is told
  } catch (...) {
    postpone_interrupt(std::current_exception());
  }
  return device_.lost();
}

bool Stream::drain(Patience& patience) {
  while (!mutex_.try_lock()) {
    if (!patience.lasts()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
  if (given_up()) return wait_.slice(0) != GRAFT_BUSY;
  try {
    wait_.wait(lock, &patience);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Stream::keep_alive(std::shared_ptr<const void> memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_memory_.add(ops_.added(), std::move(memory));
}

bool Stream::query() {
  refuse_recording("asking whether the device is done");
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  if (late_.any()) throw_kept(lock);
  const graft_status status = wait_.query();
  if (status == GRAFT_BUSY) return false;
  finish_wait(lock, status);
  return true;
}

void Stream::throw_late(graft_status status) {
  std::unique_lock<std::mutex> lock(mutex_);
  late_.keep(handle_, status);
  throw_kept(lock);
}

void Stream::keep_late(graft_status status) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  late_.keep(handle_, status);
}

void Stream::throw_kept(std::unique_lock<std::mutex>& lock) {
  const Error error = late_.take_all();
  lock.unlock();
  concerns_.ask();  // a command elsewhere that failed says more than what failed because of it
  throw error;
}

void Stream::finish_wait(std::unique_lock<std::mutex>& lock, graft_status status) {
  if (status != GRAFT_OK) late_.keep(handle_, status);
  if (late_.any()) throw_kept(lock);
  const Check check = std::exchange(check_, {});
  lock.unlock();
  kept_memory_.release(ops_, mutex_);
  if (check.ask != nullptr) check.ask(*this, check.context);
  concerns_.ask();
}

std::optional<Error> Stream::take_late() noexcept {
  const std::lock_guard lock(mutex_);
  return late_.take_first();
}

uint64_t Stream::mark(graft_event event) {
  std::unique_lock<std::mutex> lock(mutex_);
  refuse(device_);
  refuse_recording("event_record");
  const graft_status status = Driver::call_locked(table_.event_record, event, handle_);
  if (__builtin_expect(status != GRAFT_OK, 0)) refused(lock, status, "event_record");
  return ops_.added();
}

void Stream::arm(const Check& check) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recording_ != nullptr) return recording_->add(check);
  if (CommandCapture* const capture = CommandCapture::current(*this)) capture->commands.add(check);
  check_ = check;
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
  recording->make_graphs();
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

}  // namespace graft
