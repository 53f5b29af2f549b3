// drivers/opencl/memory/memory.cpp: what all kinds of memory share: allocations in an ordered map.
#include "memory.h"

#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "graft/driver_slot.h"
#include "platform/status.h"

namespace graft::opencl {

namespace {

std::unique_ptr<Memory> of_kind(const MemorySource& source) {
  switch (source.listed.capabilities.memory) {
    case MemoryKind::kFine:
      return make_svm_memory(source, true);
    case MemoryKind::kCoarse:
      return make_svm_memory(source, false);
    case MemoryKind::kUnified:
      return make_unified_memory(source);
    case MemoryKind::kAddress:
      return make_address_memory(source);
    default:
      return make_buffer_memory(source);
  }
}

}  // namespace

std::unique_ptr<Memory> Memory::make(const MemorySource& source) {
  std::unique_ptr<Memory> memory = of_kind(source);
  memory->take_nothing();
  return memory;
}

// Among the pieces, so that it is found and announced as they are, but no memory that is held.
void Memory::take_nothing() {
  Piece piece = {kNothing, nullptr};
  graft_address address = 0;
  if (acquire(kNothing, &address, &piece) != CL_SUCCESS || address == 0) return;
  pieces_[address] = piece;
  nothing_ = address;
}

void Memory::close() {
  const auto found = pieces_.find(nothing_);
  if (found == pieces_.end()) return;
  release(found->first, found->second);
  pieces_.erase(found);
  nothing_ = 0;
}

graft_status Memory::allocate(uint64_t bytes, graft_address* out) {
  const uint64_t largest = limits_.max_allocation_bytes;
  if (largest != 0 && bytes > largest) {
    return fail(GRAFT_OUT_OF_MEMORY, std::to_string(bytes) + " bytes are more than the device " +
                                         limits_.name + " allocates at once, at most " +
                                         std::to_string(largest));
  }
  if (held_.fetch_add(bytes) + bytes > limits_.memory_bytes) {
    const uint64_t others = held_.fetch_sub(bytes) - bytes;
    return fail(GRAFT_OUT_OF_MEMORY, std::to_string(bytes) +
                                         " bytes do not fit: " + std::to_string(others) + " of " +
                                         std::to_string(limits_.memory_bytes) + " are in use");
  }
  graft_address address = 0;
  Piece piece = {bytes, nullptr};
  const cl_int code = acquire(bytes, &address, &piece);
  if (code != CL_SUCCESS || address == 0) {
    held_.fetch_sub(bytes);
    const graft_status status = code == CL_OUT_OF_RESOURCES || code == CL_SUCCESS
                                    ? GRAFT_OUT_OF_MEMORY
                                    : status_of(code, GRAFT_OUT_OF_MEMORY);
    return fail(status, "allocating " + std::to_string(bytes) + " bytes: " + code_name(code));
  }
  std::lock_guard lock(mutex_);
  pieces_[address] = piece;
  generation_.fetch_add(1, std::memory_order_release);
  *out = address;
  return GRAFT_OK;
}

graft_status Memory::free(graft_address address) {
  Piece piece;
  {
    std::lock_guard lock(mutex_);
    auto found = pieces_.find(address);
    if (found == pieces_.end()) {
      return fail(GRAFT_INVALID_ARGUMENT, "memory_free: the address is not from memory_allocate");
    }
    piece = found->second;
    pieces_.erase(found);
    generation_.fetch_add(1, std::memory_order_release);
  }
  release(address, piece);
  held_.fetch_sub(piece.bytes);
  return GRAFT_OK;
}

bool Memory::find(graft_address address, uint64_t bytes, Piece* piece, uint64_t* offset) const {
  std::shared_lock lock(mutex_);
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return false;
  const auto& [begin, one] = *std::prev(after);
  if (address - begin > one.bytes || bytes > one.bytes - (address - begin)) return false;
  *piece = one;
  *offset = address - begin;
  return true;
}

cl_int Memory::announce_all(cl_kernel kernel, cl_kernel_exec_info list) const {
  std::vector<void*> begins;
  {
    std::shared_lock lock(mutex_);
    for (const auto& [begin, piece] : pieces_) begins.push_back(reinterpret_cast<void*>(begin));
  }
  if (begins.empty()) return CL_SUCCESS;
  return cl().SetKernelExecInfo(kernel, list, begins.size() * sizeof(void*), begins.data());
}

}  // namespace graft::opencl
