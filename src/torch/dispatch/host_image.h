// src/torch/dispatch/host_image.h: a device tensor as the CPU's kernels may use it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/driver/slot_gate.h"

namespace graft::binding {

// A host tensor with the values of a device tensor. Where the driver offers memory_host_view it is
// the same memory; elsewhere, and of a sparse or a quantized tensor, a copy.
class HostImage {
 public:
  // Waits for the current stream of the tensor's device. storage: what fetch_storage gave for it,
  // where other images of the same call lie in the same storage. Throws Error.
  explicit HostImage(const at::Tensor& device, const at::Tensor& storage = {});

  // The whole storage of a device tensor in host memory, so that images of tensors that overlap
  // overlap as well; undefined where the driver offers memory_host_view, which does so anyway.
  static at::Tensor fetch_storage(const at::Tensor& device);

  const at::Tensor& device() const { return device_; }
  const at::Tensor& host() const { return host_; }

  // Remembers what host() holds where nobody says that the CPU writes to it.
  void watch();

  // Whether the CPU wrote to host() since watch(), or resized it. Of memory that is the device's
  // it is only told while somebody watches the device's writes: they are there already.
  bool changed() const;

  // After the CPU wrote to host(), or resized it: makes the device tensor the same.
  void write_back();

  // The device tensor over device()'s storage that matches view, a host tensor over host()'s
  // storage; undefined where there is none.
  at::Tensor device_view(const at::Tensor& view) const;

  // Bytes that were copied between device and host.
  size_t bytes() const { return bytes_; }

 private:
  bool alias_device_memory(size_t bytes);
  void fetch(size_t span);
  uint64_t fingerprint() const;

  at::Tensor device_;
  at::Tensor host_;
  const void* origin_ = nullptr;  // where host_'s memory was before the CPU could resize it
  bool aliases_ = false;          // host_'s memory is the device's
  std::optional<SlotGate> gate_;  // which stays open while it is
  bool same_strides_ = true;
  std::optional<uint64_t> watched_;  // the fingerprint of what host_ held
  int64_t before_ = 0;               // bytes of the device's storage that come before host_'s
  size_t bytes_ = 0;
};

}  // namespace graft::binding
