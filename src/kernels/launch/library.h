// src/kernels/launch/library.h: a device's vendor library and the plans made with it.
#pragma once

#include <memory>

#include "graft/extensions.h"
#include "kernels/launch/plan_cache.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"
#include "runtime/stream/stream.h"

namespace graft {

// Whether the device's driver offers graft.blas and graft.dnn. Thread-safe, as what follows.
bool has_blas(OpenDevice& device);
bool has_dnn(OpenDevice& device);

// Whether a library may cap results of that dtype where PyTorch's wrap: those of quantized networks
// do. Such a convolution is not for libraries.
inline bool may_saturate(graft_dtype result) {
  return !is_floating(result) && size_of(result) < sizeof(int32_t);
}

// A view as descriptors hold it, without its address. REQUIRES: rank <= GRAFT_MAX_RANK.
graft_tensor describe(const TensorView& view);

// Adds a step to a descriptor. dtype: the operand's, or the result's where there is none.
template <class Descriptor>
void append_epilogue(Descriptor* call, graft_epilogue_kind kind, graft_dtype dtype, double value) {
  call->epilogues[call->epilogue_count++] = {static_cast<uint32_t>(kind),
                                             static_cast<uint32_t>(dtype), value};
}

// The library's plan for a call, kept by the bytes of its descriptor, which was zeroed before it
// was filled in; null where there is no library or it answers UNSUPPORTED. Any other failure throws
// Error.
std::shared_ptr<const CachedPlan> library_plan(OpenDevice& device, const graft_matmul& call);
std::shared_ptr<const CachedPlan> library_plan(OpenDevice& device, const graft_convolution& call);

// Queues the plan with a workspace of its own. result: which of the execution's tensors it writes.
void execute_plan(Stream& stream, const std::shared_ptr<const CachedPlan>& plan,
                  graft_execution& execution, uint32_t result = 2);

}  // namespace graft
