// src/torch/offload/transfer.h: tensors between host memory and a device, through pinned memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace graft::binding {

struct HostAndDevice {
  at::Tensor host, device;
  bool counted = true;  // whether PyTorch's count of the host's writes goes up
};

// Not sparse, quantized or nested.
bool is_dense(const at::Tensor& tensor);

// A copy of host on the device. A dense tensor that needs no gradient goes through pinned memory
// and the call only queues; any other one is copied as .to(device) does, so that its gradient comes
// back. Throws torch.OutOfMemoryError.
at::Tensor copy_to_device(const at::Tensor& host, c10::Device device);

// A dense tensor's copy in pinned memory, by the calling thread alone; itself if it is pinned.
at::Tensor pinned_copy(const at::Tensor& host);

// Gives a storage on a device other memory, on the current stream, or none for 0 bytes; what fits
// of its contents stays. Throws torch.OutOfMemoryError.
void resize_memory(const at::Tensor& tensor, size_t bytes);

// Makes hosts equal to tensors on devices: queues all copies, then waits once. Autograd does not
// see it. REQUIRES: equal sizes. Throws the late errors of the devices' streams.
void copy_to_hosts(const std::vector<HostAndDevice>& pairs);

}  // namespace graft::binding
