// src/torch/offload/transfer.cpp: tensors between host memory and a device, through pinned memory.
#include "torch/offload/transfer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <cstring>
#include <set>

#include "torch/device/current.h"
#include "torch/tensor/storage.h"
#include "torch/ve/slot.h"
#include "torch/ve/storage.h"

namespace graft::binding {
namespace {

// A dense tensor in pinned memory, with the sizes and strides of another.
at::Tensor pinned_like(const at::Tensor& tensor) {
  const auto options =
      at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU).pinned_memory(true);
  return tensor.is_non_overlapping_and_dense()
             ? at::empty_strided(tensor.sizes(), tensor.strides(), options)
             : at::empty(tensor.sizes(), options);
}

bool plain(const at::Tensor& tensor) {
  return is_dense(tensor) && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

bool is_dense(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested();
}

at::Tensor copy_to_device(const at::Tensor& host, c10::Device device) {
  const bool differentiable = host.requires_grad() && at::GradMode::is_enabled();
  if (differentiable || !plain(host)) return host.to(device);
  if (host.is_pinned()) return host.to(device, true);
  const at::Tensor staged = pinned_like(host);
  staged.copy_(host);
  return staged.to(device, true);
}

at::Tensor pinned_copy(const at::Tensor& host) {
  if (host.is_pinned()) return host;
  const at::NoGradGuard no_gradients;
  const at::Tensor staged = pinned_like(host);
  if (plain(host) && host.is_non_overlapping_and_dense()) {
    std::memcpy(staged.mutable_data_ptr(), host.const_data_ptr(), host.nbytes());
  } else {
    staged.copy_(host);
  }
  return staged;
}

void resize_memory(const at::Tensor& tensor, size_t bytes) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (storage.device().type() == kDeviceType) return resize_storage(storage, bytes);
  const c10::Storage inner = ve::inner_storage(tensor.storage());
  resize_storage(*inner.unsafeGetStorageImpl(), bytes);
  ve::follow(storage, *inner.unsafeGetStorageImpl());
}

void copy_to_hosts(const std::vector<HostAndDevice>& pairs) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> staged;
  std::set<c10::DeviceIndex> indices;
  for (const HostAndDevice& pair : pairs) {
    staged.push_back(pinned_like(pair.device));
    staged.back().copy_(pair.device, true);
    indices.insert(ve::carrier_index(pair.device.device()));
  }
  for (const c10::DeviceIndex index : indices) current_stream(index).synchronize();
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].counted) {
      pairs[i].host.copy_(staged[i]);
    } else {
      const at::AutoDispatchBelowADInplaceOrView below_the_count;
      pairs[i].host.copy_(staged[i]);
    }
  }
}

}  // namespace graft::binding
