// src/kernels/operation/plans.h: plans of a vendor's own kernels, by what they are for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "graft/extensions.h"
#include "kernels/operation/vocabulary.h"
#include "runtime/driver/open_device.h"

namespace graft {

// A call without its addresses and scalars' values, as words. Tensors first: dtype (GRAFT_NO_TENSOR
// for one that is missing) and rank, sizes, strides; then integers, numbers, dtypes of scalars.
struct OperationKey {
  static constexpr size_t kWords = 480;

  bool fits = true;  // false: too long, or nothing for vendors
  uint32_t size = 0;
  uint32_t written = 0, tensors = 0, integers = 0, numbers = 0, scalars = 0;
  uint64_t words[kWords];
};

// A plan, destroyed through its driver when the last user lets go.
struct OperationPlan {
  OperationPlan() = default;
  OperationPlan(const OperationPlan&) = delete;
  OperationPlan& operator=(const OperationPlan&) = delete;
  ~OperationPlan();

  graft_plan plan = nullptr;
  uint64_t workspace_bytes = 0;
  graft_status (*destroy)(graft_plan) = nullptr;
  uint64_t updated = 0;  // bit i: written tensor i is read as well
};

// Whether the vendor has kernels for that operator: asked once for each device. REQUIRES: the
// device offers operations(). Throws Error where the driver fails otherwise. Thread-safe.
bool vendor_knows(OpenDevice& device, OperationId id);

// The plan of a call, made at its first one and kept; null where the vendor does not take it, which
// is kept, too: asking again costs no lock. Throws Error, never one that lacks_kernel(): INTERNAL
// for a call that is not what the vocabulary says, and what the driver says, with the operator.
// Thread-safe.
std::shared_ptr<const OperationPlan> operation_plan(OpenDevice& device, OperationId id,
                                                    const OperationKey& key);

// How many operators of the vocabulary the device's driver has kernels for: for reports.
GRAFT_EXPORT int known_operations(OpenDevice& device);

}  // namespace graft
