// src/compiler/kernels/work_mapping.cpp: how a group's kernel deals its elements out to work-items.
#include <algorithm>
#include <cstdint>

#include "compiler/kernels/group_kernel.h"
#include "runtime/stream/device.h"

namespace graft::compiler {

namespace {

// Whether positions stay below 2^31, for certain, when a launch rounds its items up.
bool is_narrow(const GroupLoops& loops) {
  constexpr int64_t kMost = INT32_MAX - kLanes * kLaneElements;
  int64_t all = 1;
  for (const Size& size : loops.sizes) {
    if (!size.is_constant() || size.constant_part() > kMost) return false;
    all *= std::max<int64_t>(size.constant_part(), 1);
    if (all > kMost) return false;
  }
  return std::ranges::all_of(loops.tensors, [&](const GroupTensor& tensor) {
    int64_t last = 0;
    for (size_t i = 0; i < loops.sizes.size(); ++i) {
      const Size& stride = tensor.strides[i];
      if (!stride.is_constant() || stride.constant_part() > kMost) return false;
      last += stride.constant_part() * std::max<int64_t>(loops.sizes[i].constant_part() - 1, 0);
      if (last > kMost) return false;
    }
    return true;
  });
}

}  // namespace

GroupKernel dealt_for(const Device& device, GroupKernel kernel) {
  if (!is_gpu_like(device)) return kernel;
  if (!kernel.loops.reduces) {
    kernel.deal = is_narrow(kernel.loops) ? WorkMapping::kLanes32 : WorkMapping::kLanes;
  } else if (!kernel.brief() && device.properties().max_group_size >= kLanes) {
    kernel.deal = WorkMapping::kLanes;
  }
  if (kernel.deal != WorkMapping::kSpans) {
    kernel.key += kernel.deal == WorkMapping::kLanes ? "_lanes" : "_lanes32";
  }
  return kernel;
}

}  // namespace graft::compiler
