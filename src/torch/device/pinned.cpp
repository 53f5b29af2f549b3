// src/torch/device/pinned.cpp: host memory that devices copy from and to without staging.
#include "torch/device/pinned.h"

#include <ATen/core/CachingHostAllocator.h>

#include "runtime/memory/pinned_allocator.h"
#include "runtime/platform/platform.h"
#include "torch/device/attach.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"

namespace graft::binding {
namespace {

void free_pinned(void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  block->allocator->free(block);
}

// Calls visit for the pinned memory of every open device until one returns true.
template <class Visit>
bool any_owner(Visit visit) {
  if (!platform().any_device_open() || forked_child()) return false;
  for (Device* const device : platform().open_devices()) {
    if (visit(device->pinned_allocator())) return true;
  }
  return false;
}

template <class Visit>
void each_owner(Visit visit) {
  any_owner([&](PinnedAllocator& owner) {
    visit(owner);
    return false;
  });
}

// The peak of several devices is the sum of theirs: at most that much was held at once.
void add(at::Stat& to, const Statistic& from) {
  to.current += from.current;
  to.peak += from.peak;
  to.allocated += from.allocated;
  to.freed += from.freed;
}

class PinnedMemory final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, cpu};
    return translate([&]() -> c10::DataPtr {
      auto& owner = platform().device(current_stream(usable_device())).pinned_allocator();
      PinnedBlock* block = owner.allocate(bytes);
      return {block->pointer, block, &free_pinned, cpu};
    });
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool record_event(void* address, void*, c10::Stream stream) override {
    return translate([&] { return record_pinned(address, runtime_stream(stream)); });
  }
  void empty_cache() override {
    translate([] { each_owner([](PinnedAllocator& owner) { owner.empty_cache(); }); });
  }
  at::HostStats get_stats() override {
    at::HostStats stats;
    each_owner([&](PinnedAllocator& owner) {
      const PinnedAllocator::Statistics found = owner.statistics();
      add(stats.active_requests, found.allocation);
      add(stats.active_bytes, found.allocated_bytes);
      add(stats.allocations, found.segment);
      add(stats.allocated_bytes, found.reserved_bytes);
      stats.num_host_alloc += found.segment.allocated;
      stats.num_host_free += found.segment.freed;
    });
    return stats;
  }
  void reset_accumulated_stats() override {
    each_owner([](PinnedAllocator& owner) { owner.reset_accumulated(); });
  }
  void reset_peak_stats() override {
    each_owner([](PinnedAllocator& owner) { owner.reset_peak(); });
  }
};

PinnedMemory& memory() {
  static auto* memory = new PinnedMemory;
  return *memory;
}

}  // namespace

c10::Allocator& pinned_memory() { return memory(); }

bool is_pinned(const void* address) {
  return any_owner([&](PinnedAllocator& owner) { return owner.find(address) != nullptr; });
}

bool record_pinned(const void* address, Stream& stream) {
  return any_owner([&](PinnedAllocator& owner) {
    PinnedBlock* block = owner.find(address);
    if (block == nullptr) return false;
    if (const auto recording = stream.recording()) {
      recording->keep(owner.retain(block));
    } else {
      owner.record_stream(block, stream);
    }
    return true;
  });
}

void attach_pinned_memory() { at::setHostAllocator(kDeviceType, &memory()); }

}  // namespace graft::binding
