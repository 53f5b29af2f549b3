// src/torch/out_argument.h: results of operators that write an out= argument.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

namespace graft::binding {

// Puts a result into an out= argument, which is resized as torch's operators do; returns it.
inline at::Tensor& store(at::Tensor& out, const at::Tensor& result) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

}  // namespace graft::binding
