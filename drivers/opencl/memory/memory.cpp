// drivers/opencl/memory/memory.cpp: what all kinds of memory share.
#include "memory.h"

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

cl_int Memory::acquire_addressed(uint64_t bytes, graft_address* out) {
  cl_mem buffer = nullptr;
  const cl_int code = acquire(bytes, out, &buffer);
  if (code != CL_SUCCESS) return code;
  if (*out != 0) {
    allocations_.add(*out, bytes, buffer);
  } else if (buffer != nullptr) {
    *out = allocations_.reserve(bytes, buffer);
    if (*out != 0) return CL_SUCCESS;
    release(0, buffer);
    return CL_OUT_OF_HOST_MEMORY;
  }
  return CL_SUCCESS;
}

// Among the allocations, so that it is found and announced as they are, but no memory that is held.
void Memory::take_nothing() {
  graft_address address = 0;
  if (acquire_addressed(kNothing, &address) == CL_SUCCESS) nothing_ = address;
}

void Memory::close() {
  if (const auto found = allocations_.remove(nothing_)) release(nothing_, found->handle);
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
  const cl_int code = acquire_addressed(bytes, &address);
  if (code != CL_SUCCESS || address == 0) {
    held_.fetch_sub(bytes);
    const graft_status status = code == CL_OUT_OF_RESOURCES || code == CL_SUCCESS
                                    ? GRAFT_OUT_OF_MEMORY
                                    : status_of(code, GRAFT_OUT_OF_MEMORY);
    return fail(status, "allocating " + std::to_string(bytes) + " bytes: " + code_name(code));
  }
  generation_.fetch_add(1, std::memory_order_release);
  *out = address;
  return GRAFT_OK;
}

graft_status Memory::free(graft_address address) {
  const auto found = allocations_.remove(address);
  if (!found) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_free: the address is not from memory_allocate");
  }
  generation_.fetch_add(1, std::memory_order_release);
  release(address, found->handle);
  held_.fetch_sub(found->bytes);
  return GRAFT_OK;
}

cl_int Memory::announce_all(cl_kernel kernel, cl_kernel_exec_info list) const {
  std::vector<void*> begins;
  allocations_.each([&](graft_address begin, uint64_t, cl_mem) {
    begins.push_back(reinterpret_cast<void*>(begin));
  });
  if (begins.empty()) return CL_SUCCESS;
  return cl().SetKernelExecInfo(kernel, list, begins.size() * sizeof(void*), begins.data());
}

}  // namespace graft::opencl
