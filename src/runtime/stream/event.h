// src/runtime/stream/event.h: a mark in a stream that others can wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/stream/event_handle.h"

namespace graft {

class OpenDevice;
class Recording;
class Stream;

// Owns one event of a driver. An event belongs to one device for good. Methods are thread-safe, but
// which mark a query sees while another thread records is up to chance. REQUIRES: the device
// outlives the event. In a forked child the destructor does nothing.
class GRAFT_EXPORT Event {
 public:
  // timed: elapsed_ns will be asked. Throws Error when the driver cannot make one.
  Event(OpenDevice& device, bool timed);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Marks the point after the stream's commands so far; replaces an older mark. On a stream that
  // records, the mark is a place in the recording: streams that wait for it join, and it counts as
  // passed at once; synchronize and elapsed_ns throw Error INVALID_ARGUMENT.
  // REQUIRES: the stream belongs to the event's device (Error INVALID_ARGUMENT otherwise).
  void record(Stream& stream);

  // True when the mark is passed, or none was ever set. Never blocks. A failed command counts as
  // done. Throws Error for a lost device.
  bool query();

  // Blocks until the mark is passed. Holds no lock, and ends early as Stream::synchronize does. A
  // late error of the stream that the driver hands out here is thrown (once); later it is not
  // thrown again at the stream.
  void synchronize();

  // Whether a mark was ever set.
  bool recorded() const { return stream_.load(std::memory_order_acquire) != nullptr; }

  // Nanoseconds from this mark to end's. Throws Error: UNSUPPORTED when the driver has no timing,
  // INVALID_ARGUMENT when an event is not timed or not recorded, BUSY when a mark is not passed.
  int64_t elapsed_ns(Event& end);

  graft_event handle() const { return handle_.get(); }
  OpenDevice& device() const { return device_; }
  bool timed() const { return timed_; }

  // Where the last mark is a place of: null for one of the device, or when the recording is gone.
  std::shared_ptr<Recording> recording() const;

  // The stream that was marked last, null before.
  Stream* stream() const { return stream_.load(std::memory_order_acquire); }

  // As synchronize, but a late error is left for the stream's next synchronisation. False where the
  // wait ended early; true on a lost device and in a forked child, at once.
  bool settle() noexcept;

 private:
  graft_status wait(Stream& stream);

  OpenDevice& device_;
  const EventHandle handle_;
  bool timed_;
  std::atomic<Stream*> stream_{nullptr};
  std::atomic<uint64_t> commands_{0};  // of stream_, before the mark
  std::atomic<bool> in_recording_{false};
  mutable std::mutex mutex_;  // guards recording_
  std::weak_ptr<Recording> recording_;
};

}  // namespace graft
