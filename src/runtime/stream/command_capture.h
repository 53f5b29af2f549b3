// src/runtime/stream/command_capture.h: what a thread gives to a stream, noted while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/driver/export.h"
#include "runtime/stream/command_list.h"

namespace graft {

class Stream;

// From its making to its end the calling thread's commands for one stream are noted, and run as
// ever. Other threads' are not. Work that cannot be repeated as it is spoils a capture: waiting for
// the device, events, copies from or to the host, random numbers, another stream, a capture inside.
// Dies on its thread.
class GRAFT_EXPORT CommandCapture {
 public:
  // Memory that was allocated and given back: commands from first on and before last may use it.
  struct Temporary {
    graft_address address = 0;
    uint64_t bytes = 0;
    size_t first = 0, last = 0;
  };
  explicit CommandCapture(Stream& stream);
  ~CommandCapture();
  CommandCapture(const CommandCapture&) = delete;
  CommandCapture& operator=(const CommandCapture&) = delete;

  // Whether the list is all that the thread did. False, too, while memory is still held.
  bool complete() const { return !spoiled_ && held_ == 0; }

  CommandList commands;
  std::vector<Temporary> temporaries;

  // The capture of the calling thread, null for none; costs one load while no thread captures.
  static CommandCapture* current() noexcept {
    return __builtin_expect(captures_.load(std::memory_order_relaxed) != 0, 0) ? of_thread()
                                                                               : nullptr;
  }
  // The same; null, and the capture spoiled, for another stream than the captured one.
  static CommandCapture* current(const Stream& stream) noexcept {
    CommandCapture* capture = current();
    if (capture == nullptr || &capture->stream_ == &stream) return capture;
    capture->spoil();
    return nullptr;
  }
  static void spoil_current() noexcept {
    if (CommandCapture* capture = current()) capture->spoil();
  }

  void spoil() noexcept { spoiled_ = true; }

  // Called by the stream, for what it took.
  template <class Kind>
  void add(Kind command) {
    if (!command.fixed()) spoil();
    commands.add(std::move(command));
  }

  // Called by allocators, for memory of the captured stream's device.
  void allocated(graft_address address, uint64_t bytes, const Stream& stream) noexcept;
  void freed(graft_address address) noexcept;

 private:
  static CommandCapture* of_thread() noexcept;
  static std::atomic<uint32_t> captures_;  // of all threads

  Stream& stream_;
  CommandCapture* const outer_;
  size_t held_ = 0;  // temporaries that were not given back
  bool spoiled_ = false;
};

}  // namespace graft
