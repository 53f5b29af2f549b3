// src/torch/ops/zero_tensor.cpp: tensors of zeros without memory, as autograd hands them on.
#include <ATen/EmptyTensor.h>
#include <c10/core/DefaultDtype.h>

#include <deque>
#include <mutex>

#include "operators.h"
#include "torch/device/scope.h"
#include "torch/dispatch/guarded.h"
#include "torch/version/factories.h"

namespace graft::binding {
namespace {

// Storages keep the address of their allocator, so these are never destroyed.
at::Allocator& zero_allocator(c10::Device device) {
  static std::mutex mutex;
  static auto& allocators = *new std::deque<native::ZeroTensorAllocator>();
  std::lock_guard<std::mutex> lock(mutex);
  while (allocators.size() <= static_cast<size_t>(device.index())) {
    const auto index = static_cast<c10::DeviceIndex>(allocators.size());
    allocators.emplace_back(c10::Device(kDeviceType, index));
  }
  return allocators[static_cast<size_t>(device.index())];
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_efficientzerotensor)(at::IntArrayRef size,
                                                std::optional<at::ScalarType> dtype,
                                                std::optional<at::Layout>,
                                                std::optional<at::Device> device,
                                                std::optional<bool>) {
  c10::Device place = device.value_or(c10::Device(kDeviceType));
  if (!place.has_index()) place.set_index(current_device());
  const c10::DispatchKeySet keys =
      c10::DispatchKeySet(kDispatchKey) | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  return at::detail::empty_generic(size, &zero_allocator(place), keys,
                                   dtype.value_or(c10::get_default_dtype_as_scalartype()),
                                   std::nullopt);
}

}  // namespace graft::binding
