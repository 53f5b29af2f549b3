// src/torch/offload/transfer.h: tensors between host memory and a device, through pinned memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace graft::binding {

struct HostAndDevice {
  at::Tensor host, device;
};

// Not sparse, quantized or nested.
bool is_dense(const at::Tensor& tensor);

// A copy of host on the device. A dense tensor that needs no gradient goes through pinned memory
// and the call only queues; any other one is copied as .to(device) does, so that its gradient comes
// back. Throws torch.OutOfMemoryError.
at::Tensor copy_to_device(const at::Tensor& host, c10::Device device);

// Makes hosts equal to tensors on devices: queues all copies, then waits once. Autograd does not
// see it. REQUIRES: equal sizes. Throws the late errors of the devices' streams.
void copy_to_hosts(const std::vector<HostAndDevice>& pairs);

}  // namespace graft::binding
