// src/torch/tensor/out_argument.h: results of operators that write an out= argument.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "torch/version/resize.h"

namespace graft::binding {

// Puts a result into an out= argument, which is resized as torch's operators do; returns it.
inline at::Tensor& store(at::Tensor& out, const at::Tensor& result) {
  native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// Refuses, in PyTorch's words, an output two of whose elements share memory, or that shares memory
// with an input. Call it when the output has its final size: a new one is seen to be right by a few
// comparisons.
inline void require_separate(const at::TensorBase& out,
                             std::initializer_list<const at::TensorBase*> inputs = {}) {
  at::assert_no_internal_overlap(out);
  for (const at::TensorBase* input : inputs) at::assert_no_overlap(out, *input);
}

// The same, where the output may be the input itself, element for element.
inline void require_in_place_or_separate(const at::TensorBase& out, const at::TensorBase& input) {
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, input);
}

}  // namespace graft::binding
