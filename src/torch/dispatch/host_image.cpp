// src/torch/dispatch/host_image.cpp: a device tensor as the CPU's kernels may use it.
#include "torch/dispatch/host_image.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <xxhash.h>

#include "runtime/driver/open_device.h"
#include "runtime/stream/write_epochs.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/dispatch/sparse_image.h"
#include "torch/tensor/copy.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

size_t span_bytes(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                          tensor.dtype().itemsize());
}

// A CPU tensor over given memory that the CPU may resize, which then moves to memory of its own.
at::Tensor host_over(void* memory, size_t bytes, const at::Tensor& like) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      c10::DataPtr(memory, c10::Device(c10::DeviceType::CPU)), c10::GetCPUAllocator(), true);
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  return host;
}

}  // namespace

HostImage::HostImage(const at::Tensor& device, const at::Tensor& storage) : device_(device) {
  if (is_sparse(device)) {
    host_ = sparse_copy(device, at::kCPU);
    bytes_ = sparse_bytes(host_);
    return;
  }
  if (device.is_quantized()) {
    host_ = quantized_copy(device, at::kCPU);
    bytes_ = quantized_bytes(host_);
    return;
  }
  const auto itemsize = static_cast<int64_t>(device.dtype().itemsize());
  if (storage.defined()) {
    host_ = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage.storage()),
                                                     c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                     device.dtype());
    host_.unsafeGetTensorImpl()->set_storage_offset(device.storage_offset());
    host_.unsafeGetTensorImpl()->set_sizes_and_strides(device.sizes(), device.strides());
  } else {
    const size_t span = span_bytes(device);
    before_ = device.storage_offset() * itemsize;
    if (!alias_device_memory(span)) fetch(span);
  }
  origin_ = host_.storage().data();
  if (same_strides_) {
    if (device.is_conj()) host_.unsafeGetTensorImpl()->_set_conj(true);
    if (device.is_neg()) host_.unsafeGetTensorImpl()->_set_neg(true);
  }
}

at::Tensor HostImage::fetch_storage(const at::Tensor& device) {
  Stream& stream = current_stream(device.device().index());
  const auto& storage = device.storage();
  if (memory_was_lost.load(std::memory_order_relaxed)) [[unlikely]]
    refuse_lost_memory(device);
  const auto address = reinterpret_cast<graft_address>(storage.data());
  if (storage.nbytes() == 0 || stream.device().host_view(address, storage.nbytes()) != nullptr) {
    return {};
  }
  at::Tensor bytes = at::empty({static_cast<int64_t>(storage.nbytes())}, at::kByte);
  copy_out(bytes.mutable_data_ptr(), bytes, address, storage.nbytes(), device.device().index());
  return bytes;
}

void HostImage::fetch(size_t span) {
  const size_t packed = static_cast<size_t>(device_.numel()) * device_.dtype().itemsize();
  const auto options = at::TensorOptions().dtype(device_.scalar_type());
  if (span <= 2 * packed || device_.dim() > kMaxRank) {
    const auto elements = static_cast<int64_t>(span / device_.dtype().itemsize());
    const at::Tensor flat = at::empty({elements}, options);
    copy_out(flat.mutable_data_ptr(), flat, address_of(device_), span, device_.device().index());
    host_ = flat.as_strided(device_.sizes(), device_.strides());
    bytes_ += span;
    return;
  }
  host_ = at::empty(device_.sizes(), options);
  same_strides_ = false;
  copy(host_,
       device_.is_conj() || device_.is_neg() ? device_.resolve_conj().resolve_neg() : device_);
  bytes_ += packed;
}

bool HostImage::alias_device_memory(size_t bytes) {
  // Memory that lazy clones share is nobody's to write.
  if (bytes == 0 || is_lazily_shared(device_)) return false;
  Stream& stream = current_stream(device_.device().index());
  void* memory = stream.device().host_view(address_of(device_), bytes);
  if (memory == nullptr) return false;
  gate_.emplace();  // on no other thread is the device closed meanwhile
  stream.synchronize();
  host_ = host_over(memory, bytes, device_);
  aliases_ = true;
  return true;
}

uint64_t HostImage::fingerprint() const {
  const size_t bytes = span_bytes(host_);
  return bytes == 0 ? 0 : XXH3_64bits(host_.const_data_ptr(), bytes);
}

void HostImage::watch() {
  const bool dense = !is_sparse(device_) && !device_.is_quantized();
  if (dense && (!aliases_ || writes_are_watched())) watched_ = fingerprint();
}

bool HostImage::changed() const {
  if (!watched_.has_value()) return false;
  return host_.sizes() != device_.sizes() || host_.storage().data() != origin_ ||
         fingerprint() != *watched_;
}

void HostImage::write_back() {
  if (is_sparse(device_)) {
    assign_sparse(device_, host_);
    bytes_ += sparse_bytes(host_);
    return;
  }
  if (device_.is_quantized()) {
    assign_quantized(device_, host_);
    bytes_ += quantized_bytes(host_);
    return;
  }
  const bool in_place = aliases_ && host_.storage().data() == origin_;
  if (host_.sizes() != device_.sizes()) {
    device_.resize_(host_.sizes());
    same_strides_ = false;
  }
  if (in_place) {
    if (writes_are_watched()) {
      note_write(current_stream(device_.device().index()).device(), address_of(device_));
    }
    device_.unsafeGetTensorImpl()->set_sizes_and_strides(host_.sizes(), host_.strides());
  } else if (same_strides_ && at::has_internal_overlap(device_) != at::MemOverlap::No) {
    if (lazy_clones_live()) own_memory(device_);
    const size_t span = span_bytes(host_);
    copy_in(address_of(device_), host_.const_data_ptr(), host_, span, device_.device().index());
    bytes_ += span;
  } else {
    copy(device_, host_);
    bytes_ += static_cast<size_t>(host_.numel()) * host_.dtype().itemsize();
  }
}

at::Tensor HostImage::device_view(const at::Tensor& view) const {
  if (!same_strides_ || host_.is_quantized() || !view.has_storage() || !host_.has_storage() ||
      !view.storage().is_alias_of(host_.storage()) || host_.storage().data() != origin_) {
    return {};
  }
  const int64_t offset =
      before_ + view.storage_offset() * static_cast<int64_t>(view.dtype().itemsize());
  at::Tensor found = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(device_.storage()), c10::DispatchKeySet(kDispatchKey), view.dtype());
  c10::TensorImpl& impl = *found.unsafeGetTensorImpl();
  impl.set_storage_offset(offset / static_cast<int64_t>(view.dtype().itemsize()));
  impl.set_sizes_and_strides(view.sizes(), view.strides());
  if (view.is_conj()) impl._set_conj(true);
  if (view.is_neg()) impl._set_neg(true);
  return found;
}

}  // namespace graft::binding
