// src/runtime/platform/device.h: an open device of a driver with its streams and memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "runtime/driver/export.h"
#include "runtime/driver/open_device.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pinned_allocator.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/recording.h"
#include "runtime/stream/stream.h"

namespace graft {

// Owns the streams and the allocators of an open device, which know the OpenDevice alone. Platform
// owns the devices of a process and never destroys them. Thread-safe.
class GRAFT_EXPORT Device : public OpenDevice {
 public:
  // How long the end of a process waits for the commands of all devices together.
  static constexpr std::chrono::seconds kExitLimit{5};

  // As OpenDevice's; throws what making the default stream throws, too.
  Device(Driver& driver, uint32_t ordinal, int index);
  ~Device();

  DeviceStreams& streams() { return streams_; }
  Stream& default_stream() const { return streams_.default_stream(); }
  Stream& stream_from_pool(int priority) { return streams_.from_pool(priority); }
  Stream& stream(int64_t id) const { return streams_.stream(id); }
  void synchronize() { streams_.synchronize(); }

  // Caching, or direct when GRAFT_NO_CACHING is set to anything but 0 as the device is opened.
  Allocator& allocator() const { return *allocator_; }
  PinnedAllocator& pinned_allocator() const { return *pinned_; }

  // A recording for streams of this device that keeps the allocator's pool
  // (Allocator::retain_pool).
  std::shared_ptr<Recording> make_recording(uint64_t pool);

  using OpenDevice::memory_info;
  MemoryInfo memory_info();  // asks the allocator what Graft holds

  // Takes no more commands, then waits for the streams as long as patience lasts, and drops their
  // errors. Whether they are done. Throws what the interrupt check throws. For process exit.
  bool shut_down(Patience& patience);

  // The same for a device that takes commands; false for others. Interrupted, it ends patience.
  // Says on standard error that commands are left.
  bool finish(Patience& patience) noexcept;

  // Gives everything back to the driver, and the device too: also events and memory whose owners
  // live on, which call nothing after this. Only pinned memory that is held stays, readable, for
  // good. Once; later calls do nothing. REQUIRES: shut_down returned true or the device is lost,
  // and no other thread calls a slot (slot_gate.h).
  void close() noexcept;

 private:
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<PinnedAllocator> pinned_;
  DeviceStreams streams_;
};

}  // namespace graft
