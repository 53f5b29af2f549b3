// src/kernels/launch/library.cpp: a device's vendor library and the plans made with it.
#include "kernels/launch/library.h"

#include <map>
#include <mutex>
#include <string>

#include "kernels/launch/workspace.h"
#include "runtime/driver/library.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

// An extension table of a device's driver, null where it has none, with the plans made on it. Both
// live until the process ends: drivers are never unloaded.
template <class Table>
struct Library {
  const Table* table = nullptr;
  PlanCache plans{512};
};

template <class Table>
Library<Table>& library_of(OpenDevice& device) {
  static std::mutex mutex;
  // Never destroyed: plans must not outlive their driver's own statics at exit.
  static auto& libraries = *new std::map<OpenDevice*, std::unique_ptr<Library<Table>>>();
  std::lock_guard<std::mutex> lock(mutex);
  auto& library = libraries[&device];
  if (library == nullptr) {
    library = std::make_unique<Library<Table>>();
    library->table = device.driver().template extension<Table>();
  }
  return *library;
}

template <class Table, class Descriptor, class Slot>
std::shared_ptr<const CachedPlan> plan_of(OpenDevice& device, const Descriptor& call, Slot slot,
                                          const char* what) {
  Library<Table>& library = library_of<Table>(device);
  if (library.table == nullptr) return nullptr;
  const std::string key(reinterpret_cast<const char*>(&call), sizeof(call));
  auto plan = library.plans.get(key, [&] {
    auto cached = std::make_shared<CachedPlan>();
    graft_plan_needs needs{sizeof(graft_plan_needs), 0, 0};
    graft_plan made = nullptr;
    const graft_status status =
        Driver::call(library.table->*slot, device.handle(), &call, &needs, &made);
    if (status == GRAFT_UNSUPPORTED) return cached;
    device.driver().check(status, what);
    cached->plan = made;
    cached->workspace_bytes = needs.workspace_bytes;
    cached->execute = library.table->plan_execute;
    cached->destroy = library.table->plan_destroy;
    return cached;
  });
  return plan->plan == nullptr ? nullptr : plan;
}

}  // namespace

bool has_blas(OpenDevice& device) { return library_of<graft_blas_table>(device).table != nullptr; }

bool has_dnn(OpenDevice& device) { return library_of<graft_dnn_table>(device).table != nullptr; }

graft_tensor describe(const TensorView& view) {
  graft_tensor tensor{};
  tensor.dtype = static_cast<uint32_t>(view.dtype);
  tensor.rank = static_cast<uint32_t>(view.rank);
  for (int d = 0; d < view.rank; ++d) {
    tensor.sizes[d] = view.sizes[d];
    tensor.strides[d] = view.strides[d];
  }
  return tensor;
}

std::shared_ptr<const CachedPlan> library_plan(OpenDevice& device, const graft_matmul& call) {
  return plan_of<graft_blas_table>(device, call, &graft_blas_table::matmul_plan, "matmul_plan");
}

std::shared_ptr<const CachedPlan> library_plan(OpenDevice& device, const graft_convolution& call) {
  return plan_of<graft_dnn_table>(device, call, &graft_dnn_table::convolution_plan,
                                  "convolution_plan");
}

void execute_plan(Stream& stream, const std::shared_ptr<const CachedPlan>& plan,
                  graft_execution& execution, uint32_t result) {
  const Workspace workspace(stream, plan->workspace_bytes);
  execution.struct_size = sizeof(execution);
  execution.workspace = workspace.address();
  stream.execute({plan->execute, plan->plan, execution, plan, result});
}

}  // namespace graft
