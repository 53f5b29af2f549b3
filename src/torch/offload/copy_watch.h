// src/torch/offload/copy_watch.h: whether the device wrote a copy of a tensor in host memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "torch/compiled/tensor_watch.h"

namespace graft::binding {

// Watches one copy, for who brings home what a call wrote. One thread at a time.
class CopyWatch {
 public:
  // copy: on a device of ours or of torch.device("ve"). buffer: the model may write it without
  // telling autograd.
  CopyWatch(const at::Tensor& copy, bool buffer);

  // Takes the copy as it is now, with the commands that are queued.
  void look();

  // Whether the device's commands wrote the copy since the last look(). Where memory may be written
  // behind Graft's back, a buffer is always taken for written, another tensor if PyTorch counted a
  // write.
  bool written() const;

  const at::Tensor& tensor() const { return watch_.tensors().front(); }
  bool buffer() const { return buffer_; }

 private:
  TensorWatch watch_;
  int64_t version_ = 0;
  bool buffer_;
};

}  // namespace graft::binding
