// src/torch/dispatch/list_route.h: what the _foreach operators share: their lists as views and the
// way to the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/driver/error.h"
#include "torch/device/fallback_count.h"
#include "torch/device/scope.h"
#include "torch/device/type.h"
#include "torch/tensor/dense_list.h"

namespace graft::binding {

inline std::vector<TensorView> flat_views(at::TensorList list) {
  std::vector<TensorView> views;
  views.reserve(list.size());
  for (const at::Tensor& tensor : list) views.push_back(flat_view(tensor));
  return views;
}

// Whether run() did the work. It says that the device has no such kernel before it writes anything.
template <class Run>
bool done_by(Run run, const at::Tensor& first) {
  if (first.device().type() != kDeviceType) return false;
  const DeviceScope scope(first.device());
  try {
    return run();
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    explain_fallback(error);
    return false;
  }
}

}  // namespace graft::binding
