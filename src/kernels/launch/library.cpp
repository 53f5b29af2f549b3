// src/kernels/launch/library.cpp: a device's vendor library and the plans made with it.
#include "kernels/launch/library.h"

#include <map>
#include <mutex>

#include "kernels/launch/workspace.h"
#include "runtime/driver/library.h"
#include "runtime/stream/device.h"

namespace graft {
namespace {

template <class Table>
Library<Table>& library_of(Device& device) {
  static std::mutex mutex;
  // Never destroyed: plans must not outlive their driver's own statics at exit.
  static auto& libraries = *new std::map<Device*, std::unique_ptr<Library<Table>>>();
  std::lock_guard<std::mutex> lock(mutex);
  auto& library = libraries[&device];
  if (library == nullptr) {
    library = std::make_unique<Library<Table>>();
    library->table = device.driver().template extension<Table>();
  }
  return *library;
}

}  // namespace

BlasLibrary& blas_library(Device& device) { return library_of<graft_blas_table>(device); }

DnnLibrary& dnn_library(Device& device) { return library_of<graft_dnn_table>(device); }

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

std::shared_ptr<CachedPlan> planned(Device& device, graft_status status,
                                    const graft_plan_needs& needs, graft_plan plan,
                                    graft_status (*destroy)(graft_plan), const char* what) {
  auto cached = std::make_shared<CachedPlan>();
  if (status == GRAFT_UNSUPPORTED) return cached;
  device.driver().check(status, what);
  cached->plan = plan;
  cached->workspace_bytes = needs.workspace_bytes;
  cached->destroy = destroy;
  return cached;
}

void execute_plan(Stream& stream, const std::shared_ptr<const CachedPlan>& plan,
                  graft_status (*run)(graft_stream, graft_plan, const graft_execution*),
                  graft_execution& execution, uint32_t result) {
  const Workspace workspace(stream, plan->workspace_bytes);
  execution.struct_size = sizeof(execution);
  execution.workspace = workspace.address();
  stream.execute({run, plan->plan, execution, plan, result});
}

}  // namespace graft
