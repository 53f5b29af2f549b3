// src/runtime/stream/peer_copy.cpp: copies between devices through host memory.
#include "runtime/stream/peer_copy.h"

#include <algorithm>
#include <memory>

#include "runtime/memory/pinned_allocator.h"
#include "runtime/stream/device.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

constexpr uint64_t kStagedBytes = 16 << 20;

}  // namespace

void copy_through_host(Stream& stream, graft_address to, Device& from_device, graft_address from,
                       uint64_t bytes) {
  stream.synchronize();
  Stream& other = from_device.stream_from_pool(0);
  PinnedAllocator& staging = stream.device().pinned_allocator();
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

}  // namespace graft
