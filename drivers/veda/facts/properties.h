// drivers/veda/facts/properties.h: what Graft learns of a Vector Engine, for the driver and for the
// tests that compile kernels for one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "graft/driver.h"
#include "graft/driver_slot.h"

namespace graft::veda {

// What VEDA reports of one device.
struct DeviceFacts {
  int model = 1;              // VEDA_DEVICE_ATTRIBUTE_MODEL: 1, 2 or 3 for VE1, VE2 or VE3
  uint32_t cores = 8;         // at least 1
  uint64_t memory_bytes = 0;  // of the whole device
  std::string name = "VE";    // vedaDeviceGetName
};

// A vector register has 256 lanes of 64 bits. Packed instructions put two float32 into a lane; the
// lanes count here, because LLVM's vectorised loops use no packed instructions.
inline constexpr uint32_t kLanes = 256;

// VE's malloc, which serves vedaMemAlloc, aligns to this.
inline constexpr uint64_t kAlignment = 16;

// A VEDA pointer has this many bits for the offset into its allocation.
inline constexpr int kOffsetBits = 37;

// Fills all fields of *properties but struct_size, which stays the caller's. The three models
// compute alike: float64 and float32 in vectors, float16 and bfloat16 only stored, compare-and-swap
// of 8 bytes. Graft's addresses are the processor's own, not VEDA's virtual ones, so kernels may
// load them from memory. Streams have no priorities.
inline void describe(const DeviceFacts& facts, graft_device_properties* properties) {
  graft_device_properties& p = *properties;
  const uint32_t struct_size = p.struct_size;
  p = {};
  p.struct_size = struct_size;
  p.device_class = GRAFT_CPU_LIKE;
  p.features =
      GRAFT_FEATURE_FLOAT64 | GRAFT_FEATURE_INT64_ATOMICS | GRAFT_FEATURE_POINTERS_IN_MEMORY;
  p.compute_units = facts.cores;
  p.max_group_size = 1;
  p.sub_group_size = kLanes;
  p.capability_major = static_cast<uint32_t>(facts.model);
  p.memory_bytes = facts.memory_bytes;
  p.allocation_alignment = kAlignment;
  p.max_allocation_bytes = std::min(facts.memory_bytes, uint64_t{1} << kOffsetBits);
  copy_text(facts.name, p.name, sizeof p.name);
  copy_text("NEC", p.vendor, sizeof p.vendor);
  copy_text("c", p.dialect, sizeof p.dialect);
}

}  // namespace graft::veda
