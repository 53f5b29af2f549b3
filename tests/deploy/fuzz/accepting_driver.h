// tests/deploy/fuzz/accepting_driver.h: a device that has every kernel and computes nothing.
#pragma once

#include <cstdlib>
#include <cstring>

#include "graft/driver_slot.h"
#include "runtime/driver/library.h"
#include "runtime/platform/device.h"

namespace graft::deploy::test {

// Memory is the host's and begins as zeros, copies copy, and a launch does nothing: whatever a
// graph says, no kernel reads beyond memory.
struct AcceptingSlots {
  static constexpr uint64_t kAlignment = 512, kMost = 64u << 20;

  static graft_status device_count(uint32_t* out_count) { return *out_count = 1, GRAFT_OK; }
  static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
    if (ordinal > 0) return GRAFT_NOT_FOUND;
    graft_device_properties mine{};
    mine.struct_size = properties->struct_size;
    mine.device_class = GRAFT_CPU_LIKE;
    mine.features = GRAFT_FEATURE_FLOAT64 | GRAFT_FEATURE_INT64_ATOMICS;
    mine.compute_units = mine.max_group_size = 1;
    mine.sub_group_size = 8;
    mine.memory_bytes = 4 * kMost;
    mine.allocation_alignment = kAlignment;
    copy_text("accepts all", mine.name, sizeof mine.name);
    copy_text("c", mine.dialect, sizeof mine.dialect);
    std::memcpy(properties, &mine, std::min<size_t>(mine.struct_size, sizeof mine));
    return GRAFT_OK;
  }
  static graft_status device_open(uint32_t, graft_device* out) { return give(out); }
  static graft_status device_close(graft_device) { return GRAFT_OK; }
  static graft_status memory_allocate(graft_device, uint64_t bytes, graft_address* out) {
    if (bytes > kMost) return GRAFT_OUT_OF_MEMORY;
    const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, whole);
    if (memory == nullptr) return GRAFT_OUT_OF_MEMORY;
    std::memset(memory, 0, whole);
    return *out = reinterpret_cast<graft_address>(memory), GRAFT_OK;
  }
  static graft_status memory_free(graft_device, graft_address address) {
    return std::free(reinterpret_cast<void*>(address)), GRAFT_OK;
  }
  static graft_status stream_create(graft_device, int32_t, graft_stream* out) { return give(out); }
  static graft_status stream_destroy(graft_stream) { return GRAFT_OK; }
  static graft_status stream_synchronize(graft_stream) { return GRAFT_OK; }
  static graft_status copy(graft_stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t,
                           uint32_t) {
    if (bytes == 0) return GRAFT_OK;
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return GRAFT_OK;
  }
  static graft_status fill(graft_stream, graft_address to, uint64_t bytes, const void* pattern,
                           uint32_t pattern_bytes, uint32_t) {
    for (uint64_t done = 0; done + pattern_bytes <= bytes; done += pattern_bytes) {
      std::memcpy(reinterpret_cast<char*>(to) + done, pattern, pattern_bytes);
    }
    return GRAFT_OK;
  }
  static graft_status event_create(graft_device, uint32_t, graft_event* out) { return give(out); }
  static graft_status event_destroy(graft_event) { return GRAFT_OK; }
  static graft_status event_record(graft_event, graft_stream) { return GRAFT_OK; }
  static graft_status event_query(graft_event) { return GRAFT_OK; }
  static graft_status kernel_find(graft_device, graft_program, const char*, graft_kernel* out) {
    return give(out);
  }
  static graft_status kernel_launch(graft_stream, graft_kernel, const graft_launch*) {
    return GRAFT_OK;
  }

 private:
  // A handle is any pointer that is not null.
  template <class Handle>
  static graft_status give(Handle* out) {
    static char any;
    return *out = reinterpret_cast<Handle>(&any), GRAFT_OK;
  }
};

inline graft_status accepting_query(graft_driver_table* out) {
  static constexpr graft_driver_table kTable = table_of<AcceptingSlots>("accepting");
  return graft_driver_fill(out, &kTable);
}

// The device, open until the process ends. Its index is no other device's: kernels are kept by it.
inline Device& accepting_device() {
  static Driver& driver = *Driver::adopt(&accepting_query, "/nowhere/accepting.so").release();
  static Device& device = *new Device(driver, 0, 99);
  return device;
}

}  // namespace graft::deploy::test
