// tests/emulated/veda/library/memory_map.cpp: the host's map of a device's pointers to what is
// known of their memory.
#include "tests/emulated/veda/library/memory_map.h"

#include "tests/emulated/veda/library/entry.h"

namespace emulated {

void MemoryMap::advance() { next_ = next_ >= limit_ ? 1 : next_ + 1; }

AllocationHandle MemoryMap::add(std::size_t size) {
  const std::lock_guard lock(mutex_);
  require(allocations_.size() < limit_, VEDA_ERROR_OUT_OF_MEMORY);
  while (allocations_.contains(next_)) advance();
  auto allocation = std::make_shared<Allocation>();
  allocation->pointer = VEDA_SET_PTR(device_, next_, 0);
  allocation->size = size;
  allocation->delayed = size == 0;
  allocations_[next_] = allocation;
  advance();
  return allocation;
}

AllocationHandle MemoryMap::find(VEDAdeviceptr pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(VEDA_GET_IDX(pointer));
  require(found != allocations_.end(), VEDA_ERROR_UNKNOWN_VPTR);
  return found->second;
}

void MemoryMap::remove(VEDAdeviceptr pointer) {
  const std::lock_guard lock(mutex_);
  allocations_.erase(VEDA_GET_IDX(pointer));
}

void MemoryMap::swap(VEDAdeviceptr first, VEDAdeviceptr second) {
  const std::lock_guard lock(mutex_);
  const auto one = allocations_.find(VEDA_GET_IDX(first));
  const auto two = allocations_.find(VEDA_GET_IDX(second));
  require(one != allocations_.end() && two != allocations_.end(), VEDA_ERROR_UNKNOWN_VPTR);
  std::swap(one->second, two->second);
  std::swap(one->second->pointer, two->second->pointer);
}

std::vector<AllocationHandle> MemoryMap::all() {
  const std::lock_guard lock(mutex_);
  std::vector<AllocationHandle> found;
  for (const auto& [index, allocation] : allocations_) found.push_back(allocation);
  return found;
}

void MemoryMap::clear() {
  const std::lock_guard lock(mutex_);
  allocations_.clear();
  next_ = 0;
}

}  // namespace emulated
