// src/torch/ops/pooling_averages.cpp: averages of volumes, and unpooling.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "kernels/index/index.h"
#include "kernels/pooling/volume_average.h"
#include "kernels/pooling/window_average.h"
#include "kernels/resample/resample.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/ops/pooling_checks.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"

namespace graft::binding {
namespace {

AverageBoxes boxes_of(at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                      bool count_padding, std::optional<int64_t> divisor) {
  AverageBoxes boxes;
  set_window(boxes, kernel, stride, padding);
  boxes.count_padding = count_padding;
  boxes.divisor = divisor.value_or(0);
  return boxes;
}

void check_gradient(const at::Tensor& grad_output, const at::Tensor& self) {
  check_planes(grad_output, self, 3);
  check_scalar_type(grad_output, self.scalar_type());
}

// Whole numbers are summed as such; the quotient is rounded towards 0.
void average_integers(const at::Tensor& out, const at::Tensor& self, const AverageBoxes& boxes) {
  if (out.numel() == 0) return;
  std::vector<LinearMap> maps;
  at::Tensor lengths = at::ones({}, at::kLong);
  for (int64_t d = 0; d < 3; ++d) {
    const AverageLine line{self.size(d - 3),
                           out.size(d - 3),
                           boxes.kernel[d],
                           boxes.stride[d],
                           boxes.padding[d],
                           boxes.count_padding,
                           true};
    maps.push_back(average_taps(line));
    lengths = lengths.unsqueeze(-1).mul(at::tensor(window_lengths(line), at::kLong));
  }
  resample(stream_of(self), view_of(out), view_of(self), maps);
  if (boxes.divisor != 0) {
    out.div_(at::Scalar(boxes.divisor), "trunc");
  } else {
    out.div_(lengths.to(out.device()), "trunc");
  }
}

void check_adaptive(const at::Tensor& self, const char* name) {
  for (int64_t d = 1; d < self.dim(); ++d) {
    TORCH_CHECK(self.size(d) > 0, name,
                "(): Expected input to have non-zero size for non-batch dimensions, but input has "
                "sizes ",
                self.sizes(), " with dimension ", d, " being empty");
  }
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5, name, "(): Expected 4D or 5D tensor, but got ",
              self.sizes());
}

// What upstream asks of both unpools.
void check_unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size,
                  int64_t dims) {
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(output_size.size()) == dims, "There should be exactly ",
              dims == 2 ? "two elements (height, width)" : "three elements (depth, height, width)",
              " in output_size, but got ", output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Input to max_unpooling", dims,
              "d should be a ", dims + 1, "d or ", dims + 2, "d Tensor, but got a tensor with ",
              self.dim(), " dimensions.");
  TORCH_CHECK(self.sizes() == indices.sizes(),
              "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); ++d) {
    TORCH_CHECK(self.size(d) > 0, "max_unpooling", dims,
                "d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                "dimensions, but got ",
                self.sizes(), " with dimension ", d, " being empty.");
  }
}

at::Tensor& unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size,
                   int64_t dims, at::Tensor& out) {
  check_unpool(self, indices, output_size, dims);
  require_floating(self);
  check_scalar_type(out, self.scalar_type());
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  int64_t length = 1;
  for (int64_t d = 0; d < dims; ++d) {
    sizes[self.dim() - dims + d] = output_size[d];
    length *= output_size[d];
  }
  check_resizable(out, sizes, {&self, &indices});
  const bool images = self.dim() == 4 && dims == 2;
  out.resize_(sizes, images ? self.suggest_memory_format() : at::MemoryFormat::Contiguous);
  out.zero_();
  if (self.numel() == 0 || length == 0) return out;
  const at::Tensor to = out.is_contiguous() ? out : out.contiguous();
  const int64_t planes = out.numel() / length;
  scatter(stream_of(self), view_of(to.view({planes, length})), 1,
          view_of(indices.contiguous().view({planes, -1})),
          view_of(self.contiguous().view({planes, -1})), ScatterMode::kReplace);
  if (!to.is_same(out)) out.copy_(to);
  return out;
}

}  // namespace

void GRAFT_STRUCTURED(avg_pool3d_out)(const at::Tensor& self, at::IntArrayRef kernel_size,
                                      at::IntArrayRef stride, at::IntArrayRef padding, bool,
                                      bool count_include_pad,
                                      std::optional<int64_t> divisor_override,
                                      const at::Tensor& out) {
  require_floating_or(at::kLong, self);
  require_separate(out);
  const AverageBoxes boxes =
      boxes_of(kernel_size, stride, padding, count_include_pad, divisor_override);
  if (self.is_floating_point()) {
    avg_pool3d(stream_of(self), view_of(out), view_of(self), boxes);
  } else {
    average_integers(out, self, boxes);
  }
}
void GRAFT_STRUCTURED(avg_pool3d_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor&, at::IntArrayRef kernel_size,
    at::IntArrayRef stride, at::IntArrayRef padding, bool, bool count_include_pad,
    std::optional<int64_t> divisor_override, const at::Tensor& grad_input) {
  check_gradient(grad_output, grad_input);
  require_floating_or(at::kLong, grad_output);
  avg_pool3d_backward(stream_of(grad_output), view_of(grad_input), view_of(grad_output),
                      boxes_of(kernel_size, stride, padding, count_include_pad, divisor_override));
}

at::Tensor& GRAFT_OPERATOR(adaptive_avg_pool3d_out)(const at::Tensor& self,
                                                    at::IntArrayRef output_size, at::Tensor& out) {
  TORCH_CHECK(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3");
  check_adaptive(self, "adaptive_avg_pool3d");
  TORCH_CHECK(self.dtype() == out.dtype(), "expected dtype ", self.dtype(),
              " for `output` but got dtype ", out.dtype());
  require_floating(self);
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  std::copy(output_size.begin(), output_size.end(), sizes.end() - 3);
  out.resize_(sizes);
  adaptive_avg_pool3d(stream_of(self), view_of(out), view_of(self));
  return out;
}
at::Tensor GRAFT_OPERATOR(_adaptive_avg_pool3d)(const at::Tensor& self,
                                                at::IntArrayRef output_size) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(adaptive_avg_pool3d_out)(self, output_size, out);
}
at::Tensor& GRAFT_OPERATOR(adaptive_avg_pool3d_backward_grad_input)(const at::Tensor& grad_output,
                                                                    const at::Tensor& self,
                                                                    at::Tensor& grad_input) {
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "adaptive_avg_pool3d_backward(): Expected 4D or 5D tensor, but got ", self.sizes());
  check_gradient(grad_output, self);
  check_scalar_type(grad_input, self.scalar_type());
  require_floating(grad_output);
  grad_input.resize_as_(self);
  adaptive_avg_pool3d_backward(stream_of(grad_output), view_of(grad_input), view_of(grad_output));
  return grad_input;
}
at::Tensor GRAFT_OPERATOR(_adaptive_avg_pool3d_backward)(const at::Tensor& grad_output,
                                                         const at::Tensor& self) {
  at::Tensor grad_input = at::empty({0}, self.options());
  return GRAFT_OPERATOR(adaptive_avg_pool3d_backward_grad_input)(grad_output, self, grad_input);
}

at::Tensor& GRAFT_OPERATOR(max_unpool2d_out)(const at::Tensor& self, const at::Tensor& indices,
                                             at::IntArrayRef output_size, at::Tensor& out) {
  return unpool(self, indices, output_size, 2, out);
}
at::Tensor GRAFT_OPERATOR(max_unpool2d)(const at::Tensor& self, const at::Tensor& indices,
                                        at::IntArrayRef output_size) {
  at::Tensor out = at::empty({0}, self.options());
  return unpool(self, indices, output_size, 2, out);
}
at::Tensor& GRAFT_OPERATOR(max_unpool3d_out)(const at::Tensor& self, const at::Tensor& indices,
                                             at::IntArrayRef output_size, at::IntArrayRef stride,
                                             at::IntArrayRef padding, at::Tensor& out) {
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ",
              stride.size(), " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ",
              padding.size(), " elements.");
  for (const int64_t step : stride) {
    TORCH_CHECK(step > 0, "strides should be greater than zero, but got stride: ", stride);
  }
  TORCH_CHECK(out.is_contiguous(), "output must be contiguous");
  return unpool(self, indices, output_size, 3, out);
}
at::Tensor GRAFT_OPERATOR(max_unpool3d)(const at::Tensor& self, const at::Tensor& indices,
                                        at::IntArrayRef output_size, at::IntArrayRef stride,
                                        at::IntArrayRef padding) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(max_unpool3d_out)(self, indices, output_size, stride, padding, out);
}

}  // namespace graft::binding
