// src/runtime/memory/chosen_pool.cpp: the memory pool that a thread allocates from.
#include "runtime/memory/chosen_pool.h"

#include <utility>

#include "runtime/driver/device_name.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

thread_local constinit uint64_t chosen[kMostDevices] = {};  // by the device's index

}  // namespace

uint64_t pool_for(const Stream& stream) noexcept {
  const uint64_t recorded = stream.memory_pool();
  return recorded != 0 ? recorded : chosen[stream.device().index()];
}

uint64_t choose_pool(const OpenDevice& device, uint64_t pool) noexcept {
  return std::exchange(chosen[device.index()], pool);
}

}  // namespace graft
