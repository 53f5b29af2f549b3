// src/runtime/platform/peer_copy.cpp: copies from one device to another.
#include "runtime/platform/peer_copy.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/platform/device.h"
#include "runtime/topology/device_link.h"

namespace graft {
namespace {

constexpr uint64_t kStagedBytes = 16 << 20;

void copy_through_host(Stream& stream, PinnedAllocator& staging, graft_address to, Stream& other,
                       graft_address from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += kStagedBytes) {
    const uint64_t part = std::min(bytes - done, kStagedBytes);
    const auto give_back = [&](PinnedBlock* block) { staging.free(block); };
    std::unique_ptr<PinnedBlock, decltype(give_back)> block(staging.allocate(part), give_back);
    const auto host = reinterpret_cast<uintptr_t>(block->pointer);
    staging.record_stream(block.get(), other);  // the wait for it may end early
    other.copy(host, from + done, part, GRAFT_DEVICE_TO_HOST);
    other.synchronize();
    staging.record_stream(block.get(), stream);
    stream.copy(to + done, host, part, GRAFT_HOST_TO_DEVICE);
  }
}

// Whether the driver copies between the two; it says the same each time.
bool copies_directly(const Device& to, const Device& from) {
  if (&from.driver() != &to.driver() || to.driver().table().peer_copy == nullptr) return false;
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<const Device*, const Device*>, bool>();
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace({&from, &to}, true);
  if (is_new) {
    const DeviceLink link = read_link(to.driver(), from.ordinal(), to.ordinal());
    place->second = link.kind != GRAFT_LINK_HOST;
  }
  return place->second;
}

}  // namespace

void peer_copy(Stream& stream, Device& to_device, graft_address to, Device& from_device,
               graft_address from, uint64_t bytes) {
  if (&from_device == &to_device) return stream.copy(to, from, bytes, GRAFT_DEVICE_TO_DEVICE);
  if (bytes == 0) return;
  const auto slot = to_device.driver().table().peer_copy;
  if (copies_directly(to_device, from_device)) {
    const auto call = [&](uint32_t tag) {
      return Driver::call_locked(slot, stream.handle(), to, from_device.handle(), from, bytes, tag);
    };
    return stream.command("peer_copy", call, {{TracedKind::kCopy, bytes}, to, bytes});
  }
  stream.refuse_recording("a copy between devices without peer_copy");
  stream.synchronize();
  Stream& other = from_device.stream_from_pool(0);
  copy_through_host(stream, to_device.pinned_allocator(), to, other, from, bytes);
}

}  // namespace graft
