// src/runtime/stream/stream.h: a queue of commands on a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>

#include "graft/driver.h"
#include "runtime/driver/error.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"
#include "runtime/stream/command.h"
#include "runtime/stream/command_capture.h"
#include "runtime/stream/command_counts.h"
#include "runtime/stream/command_list.h"
#include "runtime/stream/command_trace.h"
#include "runtime/stream/command_wait.h"
#include "runtime/stream/late_errors.h"
#include "runtime/stream/recording.h"
#include "runtime/wait/checks.h"
#include "runtime/wait/kept_memory.h"
#include "runtime/wait/pending_ops.h"

namespace graft {

class Allocator;
class DeviceStreams;
class Event;
class OpenDevice;
class Patience;

// Owned by its DeviceStreams, which outlives every user. Thread-safe: one lock per stream orders
// the calls of a driver's slots; a wait holds that lock and no other for 20 ms, and then no lock at
// all. A wait is one for the commands so far. It ends early where the interrupt check throws, and
// with Error TIMEOUT after wait_limit() (bounded_wait.h); the commands go on. Every command carries
// the calling thread's op tag (op_tag.h). A command that the driver refuses throws Error at the
// call; a command that fails later makes one Error with its op's name, thrown once by the next
// synchronize, query or device-to-host copy; then the stream works again. Of several the first is
// thrown, with the number of the others. On a lost device, after shutdown and in a forked child
// every method throws Error.
class GRAFT_EXPORT Stream {
 public:
  // Called by DeviceStreams alone. The second takes a handle over that the driver made.
  Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, int priority);
  Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, graft_stream handle);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  graft_stream handle() const { return handle_; }
  OpenDevice& device() const { return device_; }
  DeviceStreams& siblings() const { return siblings_; }  // of its device, itself among them
  Allocator& allocator() const { return allocator_; }    // of memory in this stream's order
  int64_t id() const { return id_; }
  int priority() const { return priority_; }

  // Queues a copy of bytes; from and to are device addresses or host pointers, as kind says. Host
  // memory stays valid, and unchanged, until the command is done.
  void copy(uint64_t to, uint64_t from, uint64_t bytes, graft_copy_kind kind);

  // Queues a copy of rows, as copy does one of bytes. False, and nothing is queued, where the
  // driver copies no such rows, and while the stream records.
  bool copy_rows(const graft_strided_copy& rows);

  // Copies bytes of device memory to the host and waits for them: a copy and synchronize in one.
  // to may be on the stack: it is written only while the call lasts, however the wait ends.
  void read(void* to, graft_address from, uint64_t bytes);

  // Queues a fill of bytes with a pattern of 1, 2, 4, 8 or 16 bytes, read during the call.
  void fill(graft_address to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes);

  // Queues a kernel over a grid of groups of `group` work-items each (1: the form of CPU-like
  // devices). The arguments are read during the call. Throws UNSUPPORTED when the driver runs no
  // kernels.
  void launch(graft_kernel kernel, uint64_t grid, const LaunchArguments& arguments,
              uint32_t group = 1);

  // Queues a call of a plan.
  void execute(LibraryCommand command);
  void execute(OperationCommand command);

  // Queues a run of an executable. Its arrays are read during the call.
  void execute(ExecutableCommand command);

  // Queues what slot(tag) does: a call of another slot that takes a stream, under the stream's
  // lock. Throws Error with what unless it returns OK, and while the stream records.
  template <class Slot>
  void command(std::string_view what, Slot&& slot, const SlotCall::Effects& effects = {}) {
    const auto call_slot = [](void* given, uint32_t tag) -> graft_status {
      return (*static_cast<std::remove_reference_t<Slot>*>(given))(tag);
    };
    call({what, const_cast<void*>(static_cast<const void*>(&slot)), call_slot, effects});
  }

  // Queues the commands of a list, and arms its checks, as the calls that they come from did.
  // Those before one that the driver refuses (which throws Error) are queued. Throws Error
  // INVALID_ARGUMENT while the stream records, and what before throws.
  void replay(CommandList& commands, ReplayCommand::Before before = {});

  // Blocks until every command so far is done, then throws what failed, if anything did.
  void synchronize();

  // The same. Where the wait ends early, the stream keeps what used() returns, a shared_ptr to the
  // host memory of its commands, until they are done.
  template <class Used>
  void synchronize(Used&& used) {
    try {
      synchronize();
    } catch (...) {
      if (given_up()) keep_alive(used());
      throw;
    }
  }

  // As synchronize, but keeps a failure for the next synchronize, query or device-to-host copy, and
  // waits while the stream records, too: for what it took before. False where the wait ended early:
  // the commands may still use their memory. True on a lost device and in a forked child, at once.
  bool settle() noexcept;
  // The same, but throws where the wait ends early.
  void settle_or_throw();

  // Whether the last wait ended early; the commands may be done by now.
  bool given_up() const { return wait_.given_up(); }

  // Holds host memory until a wait finds the commands so far done, or for good.
  void keep_alive(std::shared_ptr<const void> memory);

  // True when no command is left. Throws as synchronize does. Never blocks.
  bool query();

  // Later commands run after the event's mark. Across drivers the call blocks until it is passed.
  void wait(Event& event);

  // The vendor's own handle; false when the driver offers none.
  bool native_handle(uint64_t* out_handle);

  // The last that native_handle gave; 0 before.
  uint64_t given_handle() const { return given_handle_.load(std::memory_order_relaxed); }

  // Marks an event here; returns how many commands are before it. Used by Event::record.
  uint64_t mark(graft_event event);

  // For a wait for a mark here: so many commands are done; or it ended early; and its Error
  // TIMEOUT.
  void passed(uint64_t commands) noexcept { ops_.done(commands); }
  void give_up() noexcept { wait_.give_up(); }
  Error too_long(uint64_t commands) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return wait_.too_long(commands);
  }

  // Runs check.ask(*this, check.context) once after the next successful synchronize (or idle
  // query), outside the lock; what it throws goes to the caller. Arming again before that replaces
  // it. For records in device memory that kernels write (kernels/launch/error_record.h).
  using Check = CommandList::Check;
  void arm(const Check& check);

  // Asked after every wait for this stream, or for a mark in it, that found no late error; streams
  // that wait for a mark in this one take the questions over. They throw Error.
  WaitChecks& concerns() { return concerns_; }

  // The late error that nobody has read, as Error; none where there is none. Never blocks, and asks
  // the driver nothing: settle() and Event::settle() bring errors here.
  std::optional<Error> take_late() noexcept;

  // From now on commands are added to the recording and do not run, and memory that is allocated
  // for this stream comes from the recording's pool. Streams that wait for an event marked here
  // record too. Until the end, what waits for the device throws Error INVALID_ARGUMENT and changes
  // nothing. Throws the same when this stream already records.
  void begin_recording(const std::shared_ptr<Recording>& recording);

  // Ends it on every stream that takes part. Throws Error INVALID_ARGUMENT when none is under way.
  void end_recording();

  // Null when the stream does not record. Takes the lock only when it does.
  std::shared_ptr<Recording> recording() const;

  // The pool that memory for this stream comes from: 0, or its recording's. Takes no lock.
  uint64_t memory_pool() const { return memory_pool_.load(std::memory_order_acquire); }

  // Throws Error INVALID_ARGUMENT, with what is asked for, while the stream records. Spoils a
  // capture of the calling thread.
  void refuse_recording(std::string_view what) const {
    if (__builtin_expect(memory_pool() != 0, 0)) throw_recording(what);
    CommandCapture::spoil_current();
  }

  // For process exit, when no command is taken: waits as long as patience lasts and drops what
  // failed. Whether the commands are done. After a wait that ended early it only looks. Throws what
  // the interrupt check throws.
  bool drain(Patience& patience);

  // Gives the stream back to the driver. REQUIRES: its commands are done and none is taken.
  void close() noexcept;

  // Turns the status of a wait into the Error of a late failure, or keeps it for later.
  [[noreturn]] void throw_late(graft_status status);
  void keep_late(graft_status status) noexcept;

  // Takes no lock; a moment's figures.
  CommandCounts counts() const {
    CommandCounts now;
    now.add(counts_);
    return now;
  }

 private:
  Stream(DeviceStreams& siblings, Allocator& allocator, int64_t id, graft_stream handle,
         int priority);
  void refuse_unusable() const;
  [[noreturn]] void throw_recording(std::string_view what) const;
  void leave_recording();
  void call(SlotCall call);
  [[noreturn]] void refused(std::unique_lock<std::mutex>& lock, graft_status status,
                            std::string_view what);
  void wait_and_finish();
  // The one way in, for each kind of command.h: order, errors, trace, epochs, counts, recording and
  // capture.
  template <class Kind>
  void submit(Kind&& command);
  // REQUIRES for all below: mutex_ is held.
  template <class Kind>
  void give(std::unique_lock<std::mutex>& lock, Kind& command);
  [[noreturn]] void throw_kept(std::unique_lock<std::mutex>& lock);
  void finish_wait(std::unique_lock<std::mutex>& lock, graft_status status);

  OpenDevice& device_;
  DeviceStreams& siblings_;
  Allocator& allocator_;
  const int64_t id_;
  const int priority_;
  graft_stream handle_ = nullptr;
  const graft_driver_table& table_;
  std::atomic<uint64_t> given_handle_{0};
  StreamCounts counts_;
  WaitChecks concerns_;

  mutable std::mutex mutex_;  // orders slot calls; guards what follows
  PendingOps ops_;
  CommandWait wait_;
  LateErrors late_;
  KeptMemory kept_memory_;
  Check check_;  // the last that was armed; none without ask
  std::shared_ptr<Recording> recording_;
  std::atomic<uint64_t> memory_pool_{0};  // of recording_
};

}  // namespace graft
