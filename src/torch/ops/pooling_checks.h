// src/torch/ops/pooling_checks.h: arguments of pools, and checks of them and of gradients that
// PyTorch leaves out.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <iterator>

#include "torch/dispatch/refusal.h"

namespace graft::binding {

// Sets what a window has of each dimension from lists of one number for all dimensions or one for
// each. Without strides they are the kernel's sizes.
template <class Window>
void set_window(Window& window, at::IntArrayRef kernel, at::IntArrayRef stride,
                at::IntArrayRef padding, at::IntArrayRef dilation = 1) {
  const auto of = [](at::IntArrayRef list, size_t d) { return list[list.size() == 1 ? 0 : d]; };
  for (size_t d = 0; d < std::size(window.kernel); ++d) {
    window.kernel[d] = of(kernel, d);
    window.stride[d] = of(stride.empty() ? kernel : stride, d);
    window.padding[d] = of(padding, d);
    if constexpr (requires { window.dilation; }) window.dilation[d] = of(dilation, d);
  }
}

// Throws unless both have as many dimensions and the same planes: sizes before the last `dims`.
inline void check_planes(const at::TensorBase& grad_output, const at::TensorBase& input, int dims) {
  const int64_t planes = input.dim() - dims;
  TORCH_CHECK(planes >= 0 && grad_output.dim() == input.dim() &&
                  grad_output.sizes().slice(0, planes) == input.sizes().slice(0, planes),
              "expected grad_output for the planes of an input of size ", input.sizes(),
              ", but got grad_output of size ", grad_output.sizes());
}

// Throws for a grad_output of another dtype, as PyTorch's shape functions do.
inline void check_gradient_dtype(const at::TensorBase& grad_output, const at::TensorBase& input) {
  TORCH_CHECK(grad_output.dtype() == input.dtype(), "expected dtype ", input.dtype(),
              " for `gradOutput` but got dtype ", grad_output.dtype());
}

// Throws unless grad_output and int64 indices fit the gradient of a maximum.
inline void check_maximum_gradient(const at::TensorBase& grad_output, const at::TensorBase& indices,
                                   const at::TensorBase& grad_input, int dims) {
  check_planes(grad_output, grad_input, dims);
  TORCH_CHECK(indices.sizes() == grad_output.sizes(), "expected indices of grad_output's size ",
              grad_output.sizes(), ", but got ", indices.sizes());
  check_scalar_type(indices, at::kLong);
}

// Throws for an output that is one of the inputs and has another size than `sizes`: the input would
// be resized before it is read.
inline void check_resizable(const at::Tensor& out, at::IntArrayRef sizes,
                            std::initializer_list<const at::Tensor*> inputs) {
  for (const at::Tensor* input : inputs) {
    TORCH_CHECK(!out.is_same(*input) || out.sizes() == sizes,
                "unsupported operation: the output of size ", sizes, " is also an input of size ",
                input->sizes(), ". Give the operation another tensor for the output.");
  }
}

}  // namespace graft::binding
