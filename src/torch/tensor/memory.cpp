// src/torch/tensor/memory.cpp: device memory as PyTorch's allocator.
#include "torch/tensor/memory.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/memory/address_range.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/shared_memory.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/event.h"
#include "runtime/stream/write_epochs.h"
#include "torch/device/attach.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/ve/storage.h"

namespace graft::binding {
namespace {

// For profilers with profile_memory=True.
void report(const Block& block, int64_t more) {
  if (!c10::memoryProfilingEnabled()) [[likely]]
    return;
  const MemoryStatistics now = block.stream->allocator().statistics();
  c10::reportMemoryUsageToProfiler(
      reinterpret_cast<void*>(block.address), more,
      static_cast<size_t>(now.allocated_bytes.all().current),
      static_cast<size_t>(now.reserved_bytes.all().current),
      device_of(static_cast<c10::DeviceIndex>(block.stream->device().index())));
}

struct Observers {
  std::mutex mutex;
  std::vector<std::shared_ptr<const OutOfMemoryObserver>> all;
};

Observers& observers() {
  static auto* observers = new Observers;
  return *observers;
}

void tell_out_of_memory(Device& device, size_t wanted) noexcept {
  try {
    const MemoryInfo info = device.memory_info();
    const auto index = static_cast<c10::DeviceIndex>(device.index());
    const MemoryStatistics now = device.allocator().statistics();
    c10::reportOutOfMemoryToProfiler(
        static_cast<int64_t>(wanted), static_cast<size_t>(now.allocated_bytes.all().current),
        static_cast<size_t>(now.reserved_bytes.all().current), device_of(index));
    std::vector<std::shared_ptr<const OutOfMemoryObserver>> told;
    {
      const std::lock_guard lock(observers().mutex);
      told = observers().all;
    }
    for (const auto& observer : told) (*observer)(index, wanted, info.total, info.free);
  } catch (...) {
  }
}

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  report(*block, -static_cast<int64_t>(block->capacity));
  if (writes_are_watched()) note_release(block->stream->device(), block->address);
  shared_memory().free(block);
}

// Once more when blocks that other processes had are free again.
Block* allocate_or_collect(Stream& stream, size_t bytes) {
  for (bool again = false;; again = true) {
    try {
      return stream.allocator().allocate(bytes, stream);
    } catch (const Error& error) {
      if (error.status() != GRAFT_OUT_OF_MEMORY) throw;
      if (!again && shared_memory().collect() != 0) continue;
      tell_out_of_memory(platform().device(stream), bytes);
      throw;
    }
  }
}

c10::CachingAllocator::StatArray converted(const PooledStatistic& stat) {
  c10::CachingAllocator::StatArray found;
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].current = stat.pools[i].current;
    found[i].peak = stat.pools[i].peak;
    found[i].allocated = stat.pools[i].allocated;
    found[i].freed = stat.pools[i].freed;
  }
  return found;
}

class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    translate([&] {
      current_stream(current_device())
          .copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                GRAFT_DEVICE_TO_DEVICE);
    });
  }
  bool initialized() override { return platform().any_device_open(); }
  void emptyCache(c10::MempoolId_t) override {
    translate([] {
      shared_memory().collect();
      for (Device* const device : platform().open_devices()) device->allocator().empty_cache();
    });
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    translate([&] { record_stream(data, runtime_stream(stream)); });
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const MemoryStatistics from = translate([&] { return allocator(index).statistics(); });
    c10::CachingDeviceAllocator::DeviceStats to;
#define GRAFT_CONVERT(name) to.name = converted(from.name);
    GRAFT_MEMORY_FIGURES(GRAFT_CONVERT)
#undef GRAFT_CONVERT
    to.num_alloc_retries = from.num_alloc_retries;
    to.num_ooms = from.num_ooms;
    to.num_sync_all_streams = from.num_sync_all_streams;
    to.num_device_alloc = from.num_device_alloc;
    to.num_device_free = from.num_device_free;
    return to;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    translate([&] { allocator(index).reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    translate([&] { allocator(index).reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const MemoryInfo info = translate([&] { return device(index).memory_info(); });
    return {info.free, info.total};
  }

 private:
  static Device& device(c10::DeviceIndex index) { return device_at(resolve(index)); }
  static graft::Allocator& allocator(c10::DeviceIndex index) { return device(index).allocator(); }
};

DeviceMemory& memory() {
  static auto* memory = new DeviceMemory;  // storages outlive static objects
  return *memory;
}

// PYTORCH_ALLOC_CONF, and what torch's function for its settings changed since.
bool wants_mapping() noexcept {
  try {
    return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
  } catch (const std::exception&) {  // of a text that PyTorch refuses, where it reads it first
    return false;
  }
}

}  // namespace

c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes) {
  index = resolve(index);
  if (bytes == 0) return {nullptr, device_of(index)};
  return translate([&]() -> c10::DataPtr {
    Block* block = allocate_or_collect(current_stream(index), bytes);
    report(*block, static_cast<int64_t>(block->capacity));
    return {reinterpret_cast<void*>(block->address), block, &free_block, device_of(index)};
  });
}

c10::Allocator& device_memory() { return memory(); }

void observe_out_of_memory(OutOfMemoryObserver observer) {
  const std::lock_guard lock(observers().mutex);
  observers().all.push_back(std::make_shared<const OutOfMemoryObserver>(std::move(observer)));
}

Block* block_of(const c10::DataPtr& data) {
  const c10::DataPtr& own = ve::inner_data(data);
  if (own.get_deleter() != &free_block) return lazily_shared_block(own);
  return static_cast<Block*>(own.get_context());
}

void record_stream(const c10::DataPtr& data, Stream& stream) {
  Block* block = block_of(data);
  if (block == nullptr) return;
  if (&block->stream->device() == &stream.device()) {
    stream.allocator().record_stream(block, stream);
  } else {  // a stream of another device: the block's own stream waits for it instead
    Event used(stream.device(), false);
    used.record(stream);
    block->stream->wait(used);
  }
}

void attach_memory() {
  c10::SetAllocator(kDeviceType, &memory());
  set_mapping_wish(&wants_mapping);
}

}  // namespace graft::binding
