// src/runtime/stream/device_streams.h: the streams of a device.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/driver/export.h"
#include "runtime/stream/command_counts.h"

namespace graft {

class Allocator;
class OpenDevice;
class Patience;
class Stream;

// Owns them; each lasts as long as this. Thread-safe. In a forked child the destructor does
// nothing.
class GRAFT_EXPORT DeviceStreams {
 public:
  static constexpr int kPerPriority = 32;

  // Makes the default stream. memory: what Stream::allocator gives. REQUIRES: device outlives this.
  DeviceStreams(OpenDevice& device, Allocator& memory);
  ~DeviceStreams();
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  OpenDevice& device() const { return device_; }

  // The stream with id 0 and priority 0.
  Stream& default_stream() const { return *default_stream_; }

  // One of 32 streams of a priority, in turn; made at first use. A priority outside the
  // properties' range is moved to its nearer end.
  Stream& from_pool(int priority);

  // The stream of an id that Stream::id gave. Throws Error INVALID_ARGUMENT for any other.
  Stream& stream(int64_t id) const;

  // Whether an id is that of a stream which this makes, not one behind another's handle.
  static bool owns(int64_t id) { return id < kStreams; }

  // The stream of an id that this owns, made at its first use with this priority.
  Stream& make(int64_t id, int priority);

  // The stream behind a vendor's handle, whose owner keeps it: the same one for the same handle;
  // one of the above if the handle is its own. Throws Error: INVALID_ARGUMENT for 0 and for what
  // the driver refuses, UNSUPPORTED if it lacks stream_wrap.
  Stream& wrap(uint64_t native_handle);

  // Every stream made so far, by id.
  std::vector<Stream*> all() const;

  // Waits for all streams; throws the first late error (others stay with their streams). Ends early
  // where the wait for one does.
  void synchronize();

  // As Stream's, for all: a wait that ended early throws, or makes the result false.
  void settle_or_throw();
  bool settle() noexcept;
  bool drain(Patience& patience);
  void close() noexcept;

  // Sums over all streams.
  CommandCounts counts() const;

 private:
  static constexpr int kPriorities = 8;  // levels that the pool tells apart
  static constexpr int kStreams = 1 + kPriorities * kPerPriority;

  OpenDevice& device_;
  Allocator& memory_;
  std::atomic<Stream*> streams_[kStreams] = {};  // by id; owned
  Stream* default_stream_ = nullptr;
  std::array<std::atomic<uint32_t>, kPriorities> turns_{};
  mutable std::mutex making_;  // orders the making of streams; guards what follows
  std::vector<std::pair<uint64_t, std::unique_ptr<Stream>>> wrapped_;  // by id less kStreams
};

}  // namespace graft
