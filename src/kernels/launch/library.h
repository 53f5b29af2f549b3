// src/kernels/launch/library.h: a device's vendor library and the plans made with it.
#pragma once

#include <memory>
#include <string>

#include "graft/extensions.h"
#include "kernels/launch/plan_cache.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"
#include "runtime/stream/stream.h"

namespace graft {

// An extension table of a device's driver, null where it has none, with the plans made on it.
// Both live until the process ends: drivers are never unloaded.
template <class Table>
struct Library {
  const Table* table = nullptr;
  PlanCache plans{512};
};

using BlasLibrary = Library<graft_blas_table>;
using DnnLibrary = Library<graft_dnn_table>;

// The library of a device; thread-safe, asks the driver once.
BlasLibrary& blas_library(Device& device);
DnnLibrary& dnn_library(Device& device);

// Whether a library may cap results of that dtype where PyTorch's wrap: those of quantized networks
// do. Such a convolution is not for libraries.
inline bool may_saturate(graft_dtype result) {
  return !is_floating(result) && size_of(result) < sizeof(int32_t);
}

// A view as descriptors hold it, without its address. REQUIRES: rank <= GRAFT_MAX_RANK.
graft_tensor describe(const TensorView& view);

// The bytes of a descriptor, as a key. Descriptors are zeroed before they are filled in.
template <class Descriptor>
std::string plan_key(const Descriptor& descriptor) {
  return {reinterpret_cast<const char*>(&descriptor), sizeof(descriptor)};
}

// Makes the cache entry of a plan slot's answer: UNSUPPORTED is remembered as a null plan, any
// other failure throws Error.
std::shared_ptr<CachedPlan> planned(Device& device, graft_status status,
                                    const graft_plan_needs& needs, graft_plan plan,
                                    graft_status (*destroy)(graft_plan), const char* what);

// Queues the plan with a workspace of its own. result: which of the execution's tensors it writes.
void execute_plan(Stream& stream, const std::shared_ptr<const CachedPlan>& plan,
                  graft_status (*run)(graft_stream, graft_plan, const graft_execution*),
                  graft_execution& execution, uint32_t result = 2);

}  // namespace graft
