// src/torch/ops/pooling.cpp: max, average and adaptive average pooling of images.
#include "kernels/pooling/pooling.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/ops/pooling_checks.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"

namespace graft::binding {
namespace {

PoolWindow window_of(at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                     at::IntArrayRef dilation = 1) {
  PoolWindow window;
  set_window(window, kernel, stride, padding, dilation);
  return window;
}

at::DimVector adaptive_sizes(const at::Tensor& self, at::IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", self.sizes());
  for (const int64_t i : {-2, -1}) {
    TORCH_CHECK(self.size(i) != 0,
                "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch "
                "dimensions, but input has sizes ",
                self.sizes(), " with dimension ", i + self.dim(), " being empty");
  }
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  sizes[sizes.size() - 2] = output_size[0];
  sizes[sizes.size() - 1] = output_size[1];
  return sizes;
}

}  // namespace

void GRAFT_STRUCTURED(max_pool2d_with_indices_out)(const at::Tensor& self,
                                                   at::IntArrayRef kernel_size,
                                                   at::IntArrayRef stride, at::IntArrayRef padding,
                                                   at::IntArrayRef dilation, bool,
                                                   const at::Tensor& out,
                                                   const at::Tensor& indices) {
  require_number(self);
  if (out.numel() == 0) return;
  max_pool2d(stream_of(self), view_of(out), view_of(indices), view_of(self),
             window_of(kernel_size, stride, padding, dilation));
}

void GRAFT_STRUCTURED(max_pool2d_with_indices_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor&, at::IntArrayRef kernel_size,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool,
    const at::Tensor& indices, const at::Tensor& grad_input) {
  check_maximum_gradient(grad_output, indices, grad_input, 2);
  check_gradient_dtype(grad_output, grad_input);
  require_floating(grad_output);
  if (grad_input.numel() == 0) return;
  max_pool2d_backward(stream_of(grad_input), view_of(grad_input), view_of(grad_output),
                      view_of(indices), window_of(kernel_size, stride, padding, dilation));
}

void GRAFT_STRUCTURED(avg_pool2d_out)(const at::Tensor& self, int64_t kernel_height,
                                      int64_t kernel_width, int64_t stride_height,
                                      int64_t stride_width, int64_t padding_height,
                                      int64_t padding_width, bool, bool count_include_pad,
                                      std::optional<int64_t> divisor_override,
                                      const at::Tensor& out) {
  require_floating_or(at::kLong, self);
  require_separate(out);
  if (out.numel() == 0) return;
  const PoolWindow window = window_of({kernel_height, kernel_width}, {stride_height, stride_width},
                                      {padding_height, padding_width});
  avg_pool2d(stream_of(self), view_of(out), view_of(self), window, count_include_pad,
             divisor_override.value_or(0));
}

void GRAFT_STRUCTURED(avg_pool2d_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor&, at::IntArrayRef kernel_size,
    at::IntArrayRef stride, at::IntArrayRef padding, bool, bool count_include_pad,
    std::optional<int64_t> divisor_override, const at::Tensor& grad_input) {
  check_planes(grad_output, grad_input, 2);
  check_gradient_dtype(grad_output, grad_input);
  require_floating_or(at::kLong, grad_output);
  if (grad_input.numel() == 0) return;
  avg_pool2d_backward(stream_of(grad_input), view_of(grad_input), view_of(grad_output),
                      window_of(kernel_size, stride, padding), count_include_pad,
                      divisor_override.value_or(0));
}

at::Tensor& GRAFT_OPERATOR(adaptive_avg_pool2d_out)(const at::Tensor& self,
                                                    at::IntArrayRef output_size, at::Tensor& out) {
  TORCH_CHECK(self.dtype() == out.dtype(), "expected dtype ", self.dtype(),
              " for `output` but got dtype ", out.dtype());
  const at::DimVector sizes = adaptive_sizes(self, output_size);
  require_floating(self);
  out.resize_(sizes, self.suggest_memory_format());
  if (out.numel() > 0) adaptive_avg_pool2d(stream_of(self), view_of(out), view_of(self));
  return out;
}

at::Tensor GRAFT_OPERATOR(_adaptive_avg_pool2d)(const at::Tensor& self,
                                                at::IntArrayRef output_size) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(adaptive_avg_pool2d_out)(self, output_size, out);
}

at::Tensor GRAFT_OPERATOR(_adaptive_avg_pool2d_backward)(const at::Tensor& grad_output,
                                                         const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got ", self.sizes());
  check_planes(grad_output, self, 2);
  TORCH_CHECK(grad_output.dtype() == self.dtype(),
              "adaptive_avg_pool2d_backward(): Expected dtype ", self.dtype(),
              " for `grad_output` but got dtype ", grad_output.dtype());
  require_floating(grad_output);
  at::Tensor grad_input = at::empty_like(self, self.suggest_memory_format());
  if (grad_input.numel() == 0) return grad_input;
  if (grad_output.numel() == 0) return grad_input.zero_();
  adaptive_avg_pool2d_backward(stream_of(self), view_of(grad_input), view_of(grad_output));
  return grad_input;
}

}  // namespace graft::binding
