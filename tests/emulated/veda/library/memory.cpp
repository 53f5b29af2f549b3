// tests/emulated/veda/library/memory.cpp: VEDA's functions of device memory, but the memsets.
#include <cstdlib>

#include "tests/emulated/veda/library/devices.h"
#include "tests/emulated/veda/library/entry.h"
#include "tests/emulated/veda/library/transfer.h"

using emulated::AllocationHandle;
using emulated::current_context;
using emulated::entry;
using emulated::library;
using emulated::require;

namespace {

void allocate(VEDAdeviceptr* pointer, size_t size, VEDAstream stream) {
  require(pointer != nullptr, VEDA_ERROR_INVALID_VALUE);
  *pointer = current_context().allocate(size, stream);
}

void allocate_pitch(VEDAdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                    VEDAstream stream) {
  require(pitch != nullptr, VEDA_ERROR_INVALID_VALUE);
  allocate(pointer, width * height, stream);
  *pitch = width;
}

void release_memory(VEDAdeviceptr pointer, VEDAstream stream) {
  library().context_of(pointer).free(pointer, stream);
}

void swap(VEDAdeviceptr first, VEDAdeviceptr second, VEDAstream stream) {
  veda_context& context = library().context_of(first);
  require(&context == &library().context_of(second), VEDA_ERROR_INVALID_CONTEXT);
  context.swap(first, second, stream);
}

// Gives what is asked for, each if it is not null.
void describe(void** raw, size_t* size, VEDAdeviceptr pointer) {
  const AllocationHandle found = library().context_of(pointer).resolve(pointer);
  const std::uint64_t start = found->raw;
  const std::uint64_t address = start == 0 ? 0 : start + VEDA_GET_OFFSET(pointer);
  if (raw != nullptr) *raw = reinterpret_cast<void*>(address);
  if (size != nullptr) *size = found->size;
}

void set_option(VEDAstream stream) {
  current_context().enqueue(stream, [](emulated::Link&) { return emulated::Outcome{}; });
}

}  // namespace

VEDAresult vedaMemAlloc(VEDAdeviceptr* pointer, size_t size) {
  return entry("MemAlloc", [&] { allocate(pointer, size, -1); });
}
VEDAresult vedaMemAllocAsync(VEDAdeviceptr* pointer, size_t size, VEDAstream stream) {
  return entry("MemAllocAsync", [&] { allocate(pointer, size, stream); });
}
VEDAresult vedaMemAllocPitch(VEDAdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                             uint32_t) {
  return entry("MemAllocPitch", [&] { allocate_pitch(pointer, pitch, width, height, -1); });
}
VEDAresult vedaMemAllocPitchAsync(VEDAdeviceptr* pointer, size_t* pitch, size_t width,
                                  size_t height, uint32_t, VEDAstream stream) {
  return entry("MemAllocPitchAsync",
               [&] { allocate_pitch(pointer, pitch, width, height, stream); });
}

VEDAresult vedaMemFree(VEDAdeviceptr pointer) {
  return entry("MemFree", [&] { release_memory(pointer, -1); });
}
VEDAresult vedaMemFreeAsync(VEDAdeviceptr pointer, VEDAstream stream) {
  return entry("MemFreeAsync", [&] { release_memory(pointer, stream); });
}
VEDAresult vedaMemRelease(VEDAdeviceptr pointer) {
  return entry("MemRelease", [&] { library().context_of(pointer).release(pointer); });
}

VEDAresult vedaMemAssign(VEDAdeviceptr* pointer, void* raw, size_t size, VEDAstream stream) {
  return entry("MemAssign", [&] {
    require(pointer != nullptr, VEDA_ERROR_INVALID_VALUE);
    *pointer = current_context().assign(reinterpret_cast<std::uint64_t>(raw), size, stream);
  });
}

VEDAresult vedaMemAllocOverrideOnce(VEDAdeviceptr pointer) {
  return entry("MemAllocOverrideOnce", [&] { current_context().override_once(pointer); });
}

VEDAresult vedaMemSwap(VEDAdeviceptr first, VEDAdeviceptr second) {
  return entry("MemSwap", [&] { swap(first, second, -1); });
}
VEDAresult vedaMemSwapAsync(VEDAdeviceptr first, VEDAdeviceptr second, VEDAstream stream) {
  return entry("MemSwapAsync", [&] { swap(first, second, stream); });
}

VEDAresult vedaMemAllocHost(void** pointer, size_t size) {
  return entry("MemAllocHost", false, [&] {
    require(pointer != nullptr, VEDA_ERROR_INVALID_VALUE);
    *pointer = std::malloc(size);
    require(*pointer != nullptr || size == 0, VEDA_ERROR_OUT_OF_MEMORY);
  });
}
VEDAresult vedaMemFreeHost(void* pointer) {
  return entry("MemFreeHost", false, [&] { std::free(pointer); });
}

VEDAresult vedaMemGetInfo(size_t* free_bytes, size_t* total) {
  return entry("MemGetInfo", [&] {
    require(free_bytes != nullptr && total != nullptr, VEDA_ERROR_INVALID_VALUE);
    *total = static_cast<size_t>(library().settings.memory);
    const size_t used = current_context().used();
    *free_bytes = used > *total ? 0 : *total - used;
  });
}

VEDAresult vedaMemReport(void) {
  return entry("MemReport", [&] {
    for (emulated::Device& device : library().devices) device.context->report();
  });
}

VEDAresult vedaMemPtr(void** raw, VEDAdeviceptr pointer) {
  return entry("MemPtr", [&] {
    require(raw != nullptr, VEDA_ERROR_INVALID_VALUE);
    describe(raw, nullptr, pointer);
  });
}
VEDAresult vedaMemPtrSize(void** raw, size_t* size, VEDAdeviceptr pointer) {
  return entry("MemPtrSize", [&] {
    require(raw != nullptr && size != nullptr, VEDA_ERROR_INVALID_VALUE);
    describe(raw, size, pointer);
  });
}
VEDAresult vedaMemSize(size_t* size, VEDAdeviceptr pointer) {
  return entry("MemSize", [&] {
    require(size != nullptr, VEDA_ERROR_INVALID_VALUE);
    describe(nullptr, size, pointer);
  });
}

VEDAresult vedaMemGetAddressRange(VEDAdeviceptr* base, size_t* size, VEDAdeviceptr pointer) {
  return entry("MemGetAddressRange", [&] {
    require(base != nullptr && size != nullptr, VEDA_ERROR_INVALID_VALUE);
    describe(nullptr, size, pointer);
    *base = VEDA_SET_PTR(VEDA_GET_DEVICE(pointer), VEDA_GET_IDX(pointer), 0);
  });
}

VEDAresult vedaMemGetDevice(VEDAdevice* device, VEDAdeviceptr pointer) {
  return entry("MemGetDevice", [&] {
    require(device != nullptr, VEDA_ERROR_INVALID_VALUE);
    *device = VEDA_GET_DEVICE(pointer);
  });
}

VEDAresult vedaMemOpt(VEDAmallopt, int) {
  return entry("MemOpt", [&] { set_option(-1); });
}
VEDAresult vedaMemOptAsync(VEDAmallopt, int, VEDAstream stream) {
  return entry("MemOptAsync", [&] { set_option(stream); });
}

VEDAresult vedaMemcpyHtoD(VEDAdeviceptr to, const void* from, size_t size) {
  return entry("MemcpyHtoD", [&] { emulated::copy_to_device(to, from, size, -1); });
}
VEDAresult vedaMemcpyHtoDAsync(VEDAdeviceptr to, const void* from, size_t size, VEDAstream stream) {
  return entry("MemcpyHtoDAsync", [&] { emulated::copy_to_device(to, from, size, stream); });
}
VEDAresult vedaMemcpyDtoH(void* to, VEDAdeviceptr from, size_t size) {
  return entry("MemcpyDtoH", [&] { emulated::copy_to_host(to, from, size, -1); });
}
VEDAresult vedaMemcpyDtoHAsync(void* to, VEDAdeviceptr from, size_t size, VEDAstream stream) {
  return entry("MemcpyDtoHAsync", [&] { emulated::copy_to_host(to, from, size, stream); });
}
VEDAresult vedaMemcpyDtoD(VEDAdeviceptr to, VEDAdeviceptr from, size_t size) {
  return entry("MemcpyDtoD", [&] { emulated::copy_on_devices(to, from, size, -1); });
}
VEDAresult vedaMemcpyDtoDAsync(VEDAdeviceptr to, VEDAdeviceptr from, size_t size,
                               VEDAstream stream) {
  return entry("MemcpyDtoDAsync", [&] { emulated::copy_on_devices(to, from, size, stream); });
}
VEDAresult vedaMemcpy(VEDAdeviceptr to, VEDAdeviceptr from, size_t size) {
  return entry("Memcpy", [&] { emulated::copy_on_devices(to, from, size, -1); });
}
VEDAresult vedaMemcpyAsync(VEDAdeviceptr to, VEDAdeviceptr from, size_t size, VEDAstream stream) {
  return entry("MemcpyAsync", [&] { emulated::copy_on_devices(to, from, size, stream); });
}
