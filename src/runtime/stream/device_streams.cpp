// src/runtime/stream/device_streams.cpp: the streams of a device.
#include "runtime/stream/device_streams.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"
#include "runtime/stream/write_epochs.h"

namespace graft {

DeviceStreams::DeviceStreams(OpenDevice& device, Allocator& memory)
    : device_(device), memory_(memory) {
  const graft_device_properties& has = device.properties();
  default_stream_ = &make(0, std::clamp(0, has.priority_highest, has.priority_lowest));
}

DeviceStreams::~DeviceStreams() {
  if (forked_child()) return;
  for (const auto& slot : streams_) delete slot.load();
}

Stream& DeviceStreams::make(int64_t id, int priority) {
  std::atomic<Stream*>& slot = streams_[id];
  if (Stream* made = slot.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(making_);
  if (slot.load() == nullptr) slot.store(new Stream(*this, memory_, id, priority));
  return *slot.load();
}

Stream& DeviceStreams::wrap(uint64_t native_handle) {
  device_.refuse_unusable();
  if (native_handle == 0) {
    throw Error(GRAFT_INVALID_ARGUMENT, "A stream of " + device_.name() +
                                            " cannot have the native handle 0: give the "
                                            "address that the vendor's library made.");
  }
  for (Stream* stream : all()) {  // who has the handle of one was given it
    if (stream->given_handle() == native_handle) return *stream;
  }
  const auto slot = device_.driver().table().stream_wrap;
  if (slot == nullptr) {
    throw Error(GRAFT_UNSUPPORTED, device_.label() +
                                       " takes no streams of others: its driver lacks "
                                       "stream_wrap. Use torch.Stream.");
  }
  const std::lock_guard lock(making_);
  for (const auto& [native, stream] : wrapped_) {
    if (native == native_handle) return *stream;
  }
  distrust_device(device_);
  graft_stream handle = nullptr;
  device_.check(Driver::call(slot, device_.handle(), native_handle, &handle), "stream_wrap");
  const auto id = static_cast<int64_t>(kStreams + wrapped_.size());
  return *wrapped_.emplace_back(native_handle, std::make_unique<Stream>(*this, memory_, id, handle))
              .second;
}

Stream& DeviceStreams::from_pool(int priority) {
  device_.refuse_unusable();
  const graft_device_properties& has = device_.properties();
  const int64_t highest = has.priority_highest;
  const int64_t count = has.priority_lowest - highest + 1;
  const int64_t wanted = std::clamp<int64_t>(priority, highest, has.priority_lowest);
  const int64_t levels = std::min<int64_t>(count, kPriorities);
  const int64_t level = (wanted - highest) * levels / count;
  const uint32_t turn = turns_[level].fetch_add(1, std::memory_order_relaxed);
  const int64_t id = 1 + level * kPerPriority + turn % kPerPriority;
  return make(id, static_cast<int>(highest + level * count / levels));
}

Stream& DeviceStreams::stream(int64_t id) const {
  Stream* found = id >= 0 && id < kStreams ? streams_[id].load(std::memory_order_acquire) : nullptr;
  if (id >= kStreams) {
    const std::lock_guard lock(making_);
    const auto place = static_cast<size_t>(id - kStreams);
    if (place < wrapped_.size()) found = wrapped_[place].second.get();
  }
  if (found == nullptr) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                device_.name() + " has no stream with id " + std::to_string(id) +
                    ": use the default stream (id 0) or a stream that torch.Stream made.");
  }
  return *found;
}

std::vector<Stream*> DeviceStreams::all() const {
  std::vector<Stream*> made;
  for (const auto& slot : streams_) {
    if (Stream* stream = slot.load(std::memory_order_acquire)) made.push_back(stream);
  }
  const std::lock_guard lock(making_);
  for (const auto& [native, stream] : wrapped_) made.push_back(stream.get());
  return made;
}

void DeviceStreams::synchronize() {
  device_.refuse_unusable();
  std::optional<Error> first;
  for (Stream* stream : all()) {
    try {
      first ? static_cast<void>(stream->settle()) : stream->synchronize();
    } catch (const Error& error) {
      if (stream->given_up()) throw;
      first.emplace(error);
    }
  }
  if (first) throw Error(*first);
}

void DeviceStreams::settle_or_throw() {
  for (Stream* stream : all()) stream->settle_or_throw();
}

bool DeviceStreams::settle() noexcept {
  bool done = true;
  for (Stream* stream : all()) done &= stream->settle();
  return done;
}

bool DeviceStreams::drain(Patience& patience) {
  bool done = true;
  for (Stream* stream : all()) done &= stream->drain(patience);
  return done;
}

void DeviceStreams::close() noexcept {
  for (Stream* stream : all()) stream->close();
}

CommandCounts DeviceStreams::counts() const {
  CommandCounts sum;
  for (const Stream* stream : all()) sum.add(stream->counts());
  return sum;
}

}  // namespace graft
