// src/kernels/launch/lanes.h: how elements are dealt out to the work-items of a GPU-like device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/print/dialect.h"
#include "runtime/driver/open_device.h"

namespace graft {

// How the elements are dealt out to work-items.
enum class WorkMapping : uint8_t {
  kSpans,    // a run of elements each: wide vectors, for CPU-like devices
  kLanes,    // neighbours take neighbouring elements, for GPU-like devices
  kLanes32,  // the same; every position fits in int32
  kShuffles  // the same; work-items that share a line hand values over within sub-groups
};

// What a kernel's key says of it.
constexpr const char* suffix_of(WorkMapping deal) {
  constexpr const char* kSuffixes[] = {"", "_lanes", "_lanes32", "_shuffles"};
  return kSuffixes[static_cast<int>(deal)];
}

// Work-items that walk through memory side by side: neighbours take neighbouring elements, so that
// the loads of each sub-group (at most kLanes on any device known) fall into few cache lines.
inline constexpr int64_t kLanes = 64;

// Elements that each of them takes at most: enough to share the index arithmetic, and to have
// several loads under way.
inline constexpr int64_t kLaneElements = 4;

inline bool is_gpu_like(const OpenDevice& device) {
  return device.properties().device_class == GRAFT_GPU_LIKE;
}

// Whether the device's language has the vectors of ir.h.
inline bool has_vectors(const OpenDevice& device) {
  const ir::Dialect* const dialect = ir::find_dialect(device.properties().dialect);
  return dialect != nullptr && !dialect->vectors().empty();
}

// How a kernel whose lines a group may take together deals them out: groups of fewer work-items
// than kLanes take none.
inline WorkMapping deal_of_lines(const OpenDevice& device) {
  const graft_device_properties& properties = device.properties();
  if (!is_gpu_like(device) || properties.max_group_size < kLanes) return WorkMapping::kSpans;
  return (properties.features & GRAFT_FEATURE_SHUFFLES) != 0 ? WorkMapping::kShuffles
                                                             : WorkMapping::kLanes;
}

// How a launch over count elements is cut. tile: elements of kLanes work-items together, fewer
// where the device would stand idle otherwise; grid: work-items, a multiple of kLanes.
struct LaneSplit {
  int64_t tile = kLanes;
  int64_t grid = 0;

  LaneSplit(const OpenDevice& device, int64_t count) {
    const int64_t idle = static_cast<int64_t>(device.properties().compute_units) * kLanes * 16;
    const int64_t each = std::clamp<int64_t>(count / idle, 1, kLaneElements);
    tile = each * kLanes;
    grid = (count + tile - 1) / tile * kLanes;
  }
};

}  // namespace graft
