// src/torch/offload/shipment.h: the tensors of one call, from host memory to a device and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "torch/compiled/tensor_watch.h"

namespace graft::binding {

// Copies of a call's arguments on a device. One thread at a time, without Python's lock.
class Shipment {
 public:
  // Queues the copies; those of tensors that require gradients are functions of them. Throws
  // torch.OutOfMemoryError.
  Shipment(std::vector<at::Tensor> hosts, c10::Device device);

  const std::vector<at::Tensor>& copies() const { return copies_; }

  // Makes the arguments equal to their copies where the call wrote these, as if it had written the
  // arguments: PyTorch counts the write, and autograd sees it where the copy requires a gradient.
  // Throws late errors, and PyTorch's error for a leaf that must not be written.
  void write_back();

 private:
  std::vector<at::Tensor> hosts_, copies_;
  std::vector<TensorWatch> watches_;
  std::vector<int64_t> versions_;
};

}  // namespace graft::binding
