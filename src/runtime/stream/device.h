// src/runtime/stream/device.h: an open device of a driver with its streams and memory.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/error.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pinned_allocator.h"
#include "runtime/stream/stream.h"

namespace graft {

class Patience;

// Free and total bytes of a device's memory.
struct MemoryInfo {
  uint64_t free = 0;
  uint64_t total = 0;
};

// Opens its device in the constructor and closes it in close() or the destructor. Platform owns the
// devices of a process and never destroys them. Thread-safe. A device of which any slot said
// DEVICE_LOST is lost for good: every later call throws one and the same Error.
class GRAFT_EXPORT Device {
 public:
  static constexpr int kStreamsPerPriority = 32;
  // How long the end of a process waits for the commands of all devices together.
  static constexpr std::chrono::seconds kExitLimit{5};

  // index: its number in this process. Throws Error when the driver cannot open it.
  Device(Driver& driver, uint32_t ordinal, int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "graft:0"
  std::string label() const;                         // "graft:0 (driver 'host')"
  Driver& driver() const { return driver_; }
  uint32_t ordinal() const { return ordinal_; }  // its number in its driver
  graft_device handle() const { return handle_; }
  const graft_device_properties& properties() const { return properties_; }

  // The stream with id 0 and priority 0.
  Stream& default_stream() const { return *default_stream_; }

  // One of 32 streams of a priority, in turn; made at first use. A priority outside the
  // properties' range is moved to its nearer end.
  Stream& stream_from_pool(int priority);

  // The stream of an id that Stream::id gave. Throws Error INVALID_ARGUMENT for any other.
  Stream& stream(int64_t id) const;

  // Every stream made so far, by id.
  std::vector<Stream*> streams() const;

  // Caching, or direct when GRAFT_NO_CACHING is set to anything but 0 as the device is opened.
  Allocator& allocator() const { return *allocator_; }
  PinnedAllocator& pinned_allocator() const { return *pinned_; }

  // Waits for all streams; throws the first late error (others stay with their streams). Ends early
  // where the wait for one does.
  void synchronize();

  // The driver's figures; by default the total less what Graft holds.
  MemoryInfo memory_info();
  MemoryInfo memory_info(uint64_t held);  // as above, when what Graft holds is known

  // What a sensor of the device reads now, in the unit of GRAFT_SENSORS. Throws Error, UNSUPPORTED
  // where the driver or the device has no such sensor.
  int64_t sensor(graft_sensor which);

  // A host pointer to device memory, null when the driver gives none.
  void* host_view(graft_address address, uint64_t bytes);

  // Throws Error unless status is OK, as Driver::check does, with the device's name. what: a slot.
  void check(graft_status status, std::string_view what) {
    if (__builtin_expect(status != GRAFT_OK, 0)) fail(status, what);
  }

  bool lost() const { return state_.load(std::memory_order_relaxed) == State::kLost; }

  // Whether commands are taken: not lost and not shut down.
  bool usable() const { return state_.load(std::memory_order_relaxed) == State::kOpen; }

  // Throws the Error of a device that is not usable, or of a forked child.
  void refuse_unusable() const;
  Error unusable_error() const;

  // Marks the device lost; message is the driver's. The first one stays.
  void lose(const std::string& message, std::string_view op);

  // Takes no more commands, then waits for the streams as long as patience lasts, and drops their
  // errors. Whether they are done. Throws what the interrupt check throws. For process exit.
  bool shut_down(Patience& patience);

  // Gives everything back to the driver, and the device too: also events and memory whose owners
  // live on, which call nothing after this. Only pinned memory that is held stays, readable, for
  // good. REQUIRES: shut_down returned true, and no other thread calls a slot (slot_gate.h).
  void close() noexcept;

  // Events and memory that close gives back. disown: whether it did not yet.
  void own(graft_event event);
  bool disown(graft_event event) noexcept;
  void own(graft_address address);

  // Sums over all streams.
  CommandCounts counts() const;
  uint64_t launches() const { return counts().launches; }

 private:
  enum class State : uint8_t { kOpen, kLost, kShutDown };
  static constexpr int kPriorities = 8;  // levels that the pool tells apart
  static constexpr int kStreams = 1 + kPriorities * kStreamsPerPriority;

  [[noreturn]] void fail(graft_status status, std::string_view what);
  Stream& make_stream(int64_t id, int priority);

  Driver& driver_;
  const uint32_t ordinal_;
  const int index_;
  const std::string name_;
  graft_device_properties properties_{};
  graft_device handle_ = nullptr;
  std::atomic<State> state_{State::kOpen};
  std::atomic<Stream*> streams_[kStreams] = {};  // by id; owned
  Stream* default_stream_ = nullptr;
  std::array<std::atomic<uint32_t>, kPriorities> turns_{};
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<PinnedAllocator> pinned_;
  std::mutex making_;         // orders the making of streams
  mutable std::mutex mutex_;  // guards the text of the loss
  std::string loss_;
  std::mutex owned_;  // guards what follows
  std::unordered_set<graft_event> events_;
  std::vector<graft_address> addresses_;
  bool closed_ = false;
};

}  // namespace graft
