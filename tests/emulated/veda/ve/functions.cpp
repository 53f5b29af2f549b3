// tests/emulated/veda/ve/functions.cpp: VEDA's functions for device code (device.h).
#include <cstring>

#include "tests/emulated/veda/device.h"
#include "tests/emulated/veda/ve/memory.h"

using emulated::memory;
using emulated::Segment;

namespace {

std::uint64_t number(VEDAdeviceptr pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

VEDAresult flat(void* to, std::uint64_t width, std::uint64_t x, std::uint64_t y, size_t count) {
  emulated::fill(to, width, {x, y}, count, 1, 0);
  return VEDA_SUCCESS;
}

}  // namespace

extern "C" {

VEDAresult vedaMemPtrSize(void** raw, size_t* size, VEDAdeviceptr pointer) {
  const Segment segment = memory().find(number(pointer));
  if (segment.raw == 0) return VEDA_ERROR_UNKNOWN_VPTR;
  if (raw != nullptr)
    *raw = reinterpret_cast<void*>(segment.raw + VEDA_GET_OFFSET(number(pointer)));
  if (size != nullptr) *size = segment.size;
  return VEDA_SUCCESS;
}

VEDAresult vedaMemPtr(void** raw, VEDAdeviceptr pointer) {
  return vedaMemPtrSize(raw, nullptr, pointer);
}

VEDAresult vedaMemSize(size_t* size, VEDAdeviceptr pointer) {
  return vedaMemPtrSize(nullptr, size, pointer);
}

VEDAresult vedaMemAlloc(VEDAdeviceptr pointer, size_t size) {
  return memory().allocate_delayed(number(pointer), size, nullptr);
}

VEDAresult vedaMemAllocPtr(void** raw, VEDAdeviceptr pointer, size_t size) {
  std::uint64_t address = 0;
  const VEDAresult result = memory().allocate_delayed(number(pointer), size, &address);
  *raw = reinterpret_cast<void*>(address);
  return result;
}

VEDAresult vedaMemFree(VEDAdeviceptr pointer) { return memory().free_delayed(number(pointer)); }

VEDAresult vedaMemSwap(VEDAdeviceptr first, VEDAdeviceptr second) {
  return memory().swap(number(first), number(second));
}

VEDAresult vedaHMemPtr(void** raw, VEDAhmemptr pointer) {
  const auto bits = reinterpret_cast<std::uint64_t>(pointer);
  *raw = reinterpret_cast<void*>(bits & ((UINT64_C(1) << 59) - 1));
  return VEDA_SUCCESS;
}

VEDAresult vedaMemcpy(void* to, const void* from, size_t size) {
  std::memmove(to, from, size);
  return VEDA_SUCCESS;
}

VEDAresult vedaMemsetD8(void* to, uint8_t value, size_t count) {
  return flat(to, 1, value, 0, count);
}
VEDAresult vedaMemsetD16(void* to, uint16_t value, size_t count) {
  return flat(to, 2, value, 0, count);
}
VEDAresult vedaMemsetD32(void* to, uint32_t value, size_t count) {
  return flat(to, 4, value, 0, count);
}
VEDAresult vedaMemsetD64(void* to, uint64_t value, size_t count) {
  return flat(to, 8, value, 0, count);
}
VEDAresult vedaMemsetD128(void* to, uint64_t x, uint64_t y, size_t count) {
  return flat(to, 16, x, y, count);
}

}  // extern "C"
