// src/torch/compiled/write_count.h: PyTorch's count of a tensor's writes.
#pragma once

#include <ATen/core/Tensor.h>

namespace graft::binding {

// Writes of the two are counted as one tensor's, so that PyTorch refuses a backward pass that saved
// the one after a counted write of the other. Nothing for tensors of inference mode.
void share_count(const at::Tensor& copy, const at::Tensor& source);

// Writes of the tensor are counted apart again.
void count_apart(const at::Tensor& tensor);

}  // namespace graft::binding
