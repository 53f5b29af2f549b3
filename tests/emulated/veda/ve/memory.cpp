// tests/emulated/veda/ve/memory.cpp: the memory of one device and the map of its pointers.
#include "tests/emulated/veda/ve/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace emulated {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFirstAddress = UINT64_C(1) << 45;
constexpr std::uint64_t kDeviceBytes = UINT64_C(1) << 40;

std::uint64_t pages(std::uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

Memory* process_memory = nullptr;

}  // namespace

Memory::Memory(int device, std::uint64_t limit)
    : limit_(limit), next_(kFirstAddress + static_cast<std::uint64_t>(device) * kDeviceBytes) {}

std::uint64_t Memory::map_locked(std::uint64_t size) {
  if (size > limit_ || used_ > limit_ - size) return 0;
  void* wanted = reinterpret_cast<void*>(next_);
  void* mapped = ::mmap(wanted, pages(size), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped != wanted) return 0;
  const std::uint64_t raw = next_;
  next_ += pages(size) + kPage;
  used_ += size;
  sizes_[raw] = size;
  return raw;
}

void Memory::unmap_locked(std::uint64_t raw) {
  const auto found = sizes_.find(raw);
  if (found == sizes_.end()) return;
  ::munmap(reinterpret_cast<void*>(raw), pages(found->second));
  used_ -= found->second;
  sizes_.erase(found);
}

std::uint64_t Memory::allocate_raw(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  return map_locked(size);
}

VEDAresult Memory::free_raw(std::uint64_t raw) {
  const std::lock_guard lock(mutex_);
  if (!sizes_.contains(raw)) return VEDA_ERROR_UNKNOWN_HMEM;
  unmap_locked(raw);
  return VEDA_SUCCESS;
}

std::uint64_t Memory::allocate(std::uint64_t pointer, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t raw = map_locked(size);
  if (raw != 0) segments_[VEDA_GET_IDX(pointer)] = {raw, size, false, false};
  return raw;
}

void Memory::assign(std::uint64_t pointer, std::uint64_t raw, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  segments_[VEDA_GET_IDX(pointer)] = {raw, size, false, true};
}

VEDAresult Memory::allocate_delayed(std::uint64_t pointer, std::uint64_t size, std::uint64_t* raw) {
  const std::lock_guard lock(mutex_);
  if (VEDA_GET_OFFSET(pointer) != 0) return VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED;
  const auto found = segments_.find(VEDA_GET_IDX(pointer));
  if (found != segments_.end()) {
    if (found->second.size != size) return VEDA_ERROR_INVALID_VALUE;
    if (raw != nullptr) *raw = found->second.raw;
    return VEDA_ERROR_VPTR_ALREADY_ALLOCATED;
  }
  const std::uint64_t mapped = map_locked(size);
  if (mapped == 0) return VEDA_ERROR_OUT_OF_MEMORY;
  segments_[VEDA_GET_IDX(pointer)] = {mapped, size, true, false};
  if (raw != nullptr) *raw = mapped;
  return VEDA_SUCCESS;
}

VEDAresult Memory::free(std::uint64_t pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = segments_.find(VEDA_GET_IDX(pointer));
  if (found == segments_.end()) return VEDA_SUCCESS;
  if (!found->second.assigned) unmap_locked(found->second.raw);
  segments_.erase(found);
  return VEDA_SUCCESS;
}

VEDAresult Memory::free_delayed(std::uint64_t pointer) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = segments_.find(VEDA_GET_IDX(pointer));
    if (found == segments_.end()) return VEDA_ERROR_UNKNOWN_VPTR;
    if (VEDA_GET_OFFSET(pointer) != 0) return VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED;
    if (!found->second.delayed) return VEDA_ERROR_CANT_FREE_NON_DELAYED_VPTR;
  }
  return free(pointer);
}

VEDAresult Memory::release(std::uint64_t pointer) {
  const std::lock_guard lock(mutex_);
  const bool known = segments_.contains(VEDA_GET_IDX(pointer));
  return known ? VEDA_SUCCESS : VEDA_ERROR_CANT_RELEASE_NON_DEVICE_ALLOCATED_VPTR;
}

VEDAresult Memory::swap(std::uint64_t first, std::uint64_t second) {
  const std::lock_guard lock(mutex_);
  const auto one = segments_.find(VEDA_GET_IDX(first));
  const auto two = segments_.find(VEDA_GET_IDX(second));
  if (one == segments_.end() || two == segments_.end()) return VEDA_ERROR_UNKNOWN_VPTR;
  std::swap(one->second, two->second);
  return VEDA_SUCCESS;
}

Segment Memory::find(std::uint64_t pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = segments_.find(VEDA_GET_IDX(pointer));
  return found == segments_.end() ? Segment{} : found->second;
}

VEDAresult Memory::resolve(std::uint64_t pointer, std::uint64_t size, std::uint64_t* raw) {
  const Segment segment = find(pointer);
  if (segment.raw == 0) return VEDA_ERROR_UNKNOWN_VPTR;
  const std::uint64_t offset = VEDA_GET_OFFSET(pointer);
  if (offset > segment.size || size > segment.size - offset) return VEDA_ERROR_OUT_OF_BOUNDS;
  *raw = segment.raw + offset;
  return VEDA_SUCCESS;
}

void fill(void* to, std::uint64_t width, const std::uint64_t (&value)[2], std::uint64_t columns,
          std::uint64_t rows, std::uint64_t pitch) {
  const std::uint64_t bytes = columns * width;
  char* row = static_cast<char*>(to);
  for (std::uint64_t y = 0; y < rows && bytes > 0; ++y, row += pitch) {
    std::memcpy(row, value, width);
    for (std::uint64_t done = width; done < bytes; done *= 2) {
      std::memcpy(row + done, row, std::min(done, bytes - done));
    }
  }
}

Memory& memory() { return *process_memory; }

void start_memory(int device, std::uint64_t limit) { process_memory = new Memory(device, limit); }

}  // namespace emulated
