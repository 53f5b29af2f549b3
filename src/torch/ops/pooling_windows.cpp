// src/torch/ops/pooling_windows.cpp: pools beyond plain images: volumes, adaptive and fractional
// maxima, and unpooling.
#include <ATen/ops/empty.h>
#include <ATen/ops/fractional_max_pool2d_backward_ops.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "kernels/index/index.h"
#include "kernels/pooling/window_max.h"
#include "operators.h"
#include "torch/device/scope.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/ops/pooling_checks.h"
#include "torch/tensor/operands.h"
#include "torch/version/minor.h"
#include "torch/version/ops/pooling.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

using Triple = std::array<int64_t, 3>;
using Pair = std::tuple<at::Tensor, at::Tensor>;
using PairOut = std::tuple<at::Tensor&, at::Tensor&>;

// As [n, c, d, h, w]; dims: 2 for images, 3 for volumes.
at::Tensor volume(const at::Tensor& tensor, int dims) {
  const at::Tensor deep = dims == 2 ? tensor.unsqueeze(-3) : tensor;
  return deep.dim() == 4 ? deep.unsqueeze(0) : deep;
}

void largest(const at::Tensor& self, int dims, const Windows& windows, const at::Tensor& out,
             const at::Tensor& indices, const at::Tensor& samples = {}) {
  require_number(self);
  if (out.numel() == 0) return;
  const OptionalView draws(samples);
  window_max(stream_of(self), view_of(volume(out, dims)), view_of(volume(indices, dims)),
             view_of(volume(self, dims)), windows, draws.get(), dims == 2);
}

// The last dims dimensions as one line.
at::Tensor lines(const at::Tensor& tensor, int dims) {
  int64_t length = 1;
  for (int d = 1; d <= dims; ++d) length *= tensor.size(-d);
  return tensor.contiguous().view({tensor.numel() / std::max<int64_t>(length, 1), length});
}

// grad_input = 0, plus each gradient at its index. Half types are summed in float32.
void at_indices(const at::Tensor& grad_output, const at::Tensor& indices, int dims,
                const at::Tensor& grad_input) {
  check_maximum_gradient(grad_output, indices, grad_input, dims);
  check_scalar_type(grad_output, grad_input.scalar_type());
  require_floating(grad_output);
  if (grad_input.numel() == 0) return;
  if (grad_output.numel() == 0) {
    grad_input.zero_();
    return;
  }
  const auto type = grad_input.scalar_type();
  const auto wide = type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
  const bool direct = wide == type && grad_input.is_contiguous();
  const at::Tensor sums =
      direct ? grad_input.zero_() : at::zeros(grad_input.sizes(), grad_input.options().dtype(wide));
  const at::Tensor to = lines(sums, dims), from = lines(grad_output.to(wide), dims);
  const at::Tensor at = lines(indices, dims);
  scatter(stream_of(grad_input), view_of(to), 1, view_of(at), view_of(from), ScatterMode::kAdd);
  if (!direct) grad_input.copy_(sums);
}

struct Pool3d {
  Windows windows;
  Pool3d(at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
         at::IntArrayRef dilation) {
    const auto one_or_three = [](at::IntArrayRef list) {
      return list.size() == 1 || list.size() == 3;
    };
    TORCH_CHECK(one_or_three(kernel_size),
                "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
    TORCH_CHECK(
        stride.empty() || one_or_three(stride),
        "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
    TORCH_CHECK(one_or_three(padding),
                "max_pool3d: padding must either be a single int, or a tuple of three ints");
    TORCH_CHECK(one_or_three(dilation),
                "max_pool3d: dilation must be either a single int, or a tuple of three ints");
    set_window(windows, kernel_size, stride, padding, dilation);
  }
  Triple output(const at::Tensor& self, bool ceil_mode) const {
    Triple sizes;
    for (int64_t d = 0; d < 3; ++d) {
      sizes[d] = native::pooling_output_shape<int64_t>(self.size(d - 3), windows.kernel[d],
                                                       windows.padding[d], windows.stride[d],
                                                       windows.dilation[d], ceil_mode);
    }
    return sizes;
  }
};

at::MemoryFormat format_of(const at::Tensor& self) {
  return self.dim() == 5 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

// Kernels and outputs of each dimension, as PyTorch's messages call it; dims of them.
constexpr const char* kFractionalNames[] = {"time", "height", "width"};

template <int dims>
void fractional(const at::Tensor& self, at::IntArrayRef kernel_size, const at::Tensor& samples,
                const at::Tensor& output, const at::Tensor& indices) {
  native::fractional_max_pool_check_shape<dims>(self, samples);
  require_floating(self);
  // Upstream's sums of the sizes overflow for the largest kernels. The smallest ones are all alike.
  constexpr int64_t kSmallest = -(int64_t{1} << 31);
  Windows windows{Windows::kFractional};
  for (int d = 0; d < dims; ++d) {
    TORCH_CHECK(kernel_size[d] <= self.size(d - dims), "fractional_max_pool", dims, "d(): pool ",
                kFractionalNames[d + 3 - dims], " ", kernel_size[d],
                " too large relative to input ", kFractionalNames[d + 3 - dims], " ",
                self.size(d - dims));
    windows.kernel[d + 3 - dims] = std::max(kernel_size[d], kSmallest);
  }
  largest(self, dims, windows, output, indices, samples);
}

template <int dims>
at::Tensor& fractional_gradient_into(const at::Tensor& grad_output, const at::Tensor& self,
                                     at::IntArrayRef, at::IntArrayRef output_size,
                                     const at::Tensor& indices, at::Tensor& grad_input) {
  const std::string name = "fractional_max_pool" + std::to_string(dims) + "d_backward(): ";
  for (const at::Tensor& tensor : {grad_output, indices, grad_input}) {
    TORCH_CHECK(tensor.device() == self.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                self.device(), " and ", tensor.device(), "!");
  }
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, "expected an input of ",
              dims + 1, " or ", dims + 2, " dimensions, but got ", self.sizes());
  TORCH_CHECK(output_size.size() == dims, name, "expected ", dims, " output sizes, but got ",
              output_size);
  check_maximum_gradient(grad_output, indices, self, dims);
  for (int d = 0; d < dims; ++d) {
    TORCH_CHECK(output_size[d] == grad_output.size(d - dims), name, "gradOutput ",
                kFractionalNames[d + 3 - dims], " unexpected");
  }
  check_scalar_type(grad_input, self.scalar_type());
  const DeviceScope device(self.device());
  native::resize_output(grad_input, self.sizes());
  at_indices(grad_output, indices, dims, grad_input);
  return grad_input;
}

template <int dims>
at::Tensor fractional_gradient(const at::Tensor& grad_output, const at::Tensor& self,
                               at::IntArrayRef kernel_size, at::IntArrayRef output_size,
                               const at::Tensor& indices) {
  at::Tensor grad_input = at::empty(self.sizes(), self.options());
  return fractional_gradient_into<dims>(grad_output, self, kernel_size, output_size, indices,
                                        grad_input);
}

}  // namespace

PairOut GRAFT_OPERATOR(max_pool3d_with_indices_out)(const at::Tensor& self,
                                                    at::IntArrayRef kernel_size,
                                                    at::IntArrayRef stride, at::IntArrayRef padding,
                                                    at::IntArrayRef dilation, bool ceil_mode,
                                                    at::Tensor& out, at::Tensor& indices) {
  const Pool3d pool(kernel_size, stride, padding, dilation);
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input");
  const Triple size = pool.output(self, ceil_mode);
  const auto& [kind, k, s, p, d] = pool.windows;
  native::pool3d_shape_check(self, self.size(-4), k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1],
                             p[2], d[0], d[1], d[2], self.size(-3), self.size(-2), self.size(-1),
                             size[0], size[1], size[2], "max_pool3d_with_indices_out()");
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  std::copy(size.begin(), size.end(), sizes.end() - 3);
  check_scalar_type(out, self.scalar_type());
  check_scalar_type(indices, at::kLong);
  check_resizable(out, sizes, {&self});
  check_resizable(indices, sizes, {&self});
  out.resize_(sizes, format_of(self));
  indices.resize_(sizes, format_of(self));
  largest(self, 3, pool.windows, out, indices);
  return {out, indices};
}

Pair GRAFT_OPERATOR(max_pool3d_with_indices)(const at::Tensor& self, at::IntArrayRef kernel_size,
                                             at::IntArrayRef stride, at::IntArrayRef padding,
                                             at::IntArrayRef dilation, bool ceil_mode) {
  at::Tensor out = at::empty({0}, self.options());
  at::Tensor indices = at::empty({0}, self.options().dtype(at::kLong));
  GRAFT_OPERATOR(max_pool3d_with_indices_out)
  (self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
  return {out, indices};
}

at::Tensor& GRAFT_OPERATOR(max_pool3d_with_indices_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
    const at::Tensor& indices, at::Tensor& grad_input) {
  const Pool3d pool(kernel_size, stride, padding, dilation);
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input");
  check_gradient_dtype(grad_output, self);
  const Triple size = pool.output(self, ceil_mode);
  const auto& [kind, k, s, p, d] = pool.windows;
  native::pool3d_backward_shape_check(self, grad_output, indices, self.size(-4), k[0], k[1], k[2],
                                      s[0], s[1], s[2], p[0], p[1], p[2], d[0], d[1], d[2],
                                      self.size(-3), self.size(-2), self.size(-1), size[0], size[1],
                                      size[2], "max_pool3d_with_indices_backward()");
  grad_input.resize_(self.sizes(), format_of(self));
  const bool may_miss = std::ranges::any_of(d, [](int64_t step) { return step > 1; });
  if (!may_miss) {
    at_indices(grad_output, indices, 3, grad_input);
  } else {
    // A dilated window without elements has the index -1.
    const at::Tensor miss = indices.eq(-1);
    at_indices(grad_output.masked_fill(miss, 0), indices.masked_fill(miss, 0), 3, grad_input);
  }
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(max_pool3d_with_indices_backward)(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
    const at::Tensor& indices) {
  at::Tensor grad_input = at::empty({0}, self.options());
  return GRAFT_OPERATOR(max_pool3d_with_indices_backward_grad_input)(
      grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input);
}

// An adaptive pool and its gradient by their names.
#define GRAFT_ADAPTIVE_MAX(pool, gradient, dims)                                             \
  void pool(const at::Tensor& self, at::IntArrayRef, const at::Tensor& out,                  \
            const at::Tensor& indices) {                                                     \
    require_floating(self);                                                                  \
    largest(self, dims, {Windows::kAdaptive}, out, indices);                                 \
  }                                                                                          \
  void gradient(const at::Tensor& grad_output, const at::Tensor&, const at::Tensor& indices, \
                const at::Tensor& grad_input) {                                              \
    at_indices(grad_output, indices, dims, grad_input);                                      \
  }
GRAFT_ADAPTIVE_MAX(GRAFT_STRUCTURED(adaptive_max_pool2d_out),
                   GRAFT_STRUCTURED(adaptive_max_pool2d_backward_grad_input), 2)
GRAFT_ADAPTIVE_MAX(GRAFT_STRUCTURED(adaptive_max_pool3d_out),
                   GRAFT_STRUCTURED(adaptive_max_pool3d_backward_grad_input), 3)

void GRAFT_STRUCTURED(fractional_max_pool2d_output)(const at::Tensor& self,
                                                    at::IntArrayRef kernel_size, at::IntArrayRef,
                                                    const at::Tensor& random_samples,
                                                    const at::Tensor& output,
                                                    const at::Tensor& indices) {
  fractional<2>(self, kernel_size, random_samples, output, indices);
}
void GRAFT_STRUCTURED(fractional_max_pool3d_output)(
    const at::Tensor& self, int64_t kernel_depth, int64_t kernel_height, int64_t kernel_width,
    int64_t, int64_t, int64_t, const at::Tensor& random_samples, int64_t, int64_t, int64_t, int64_t,
    int64_t, const at::Tensor& output, const at::Tensor& indices) {
  fractional<3>(self, {kernel_depth, kernel_height, kernel_width}, random_samples, output, indices);
}
at::Tensor& GRAFT_OPERATOR(fractional_max_pool3d_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size,
    at::IntArrayRef output_size, const at::Tensor& indices, at::Tensor& grad_input) {
  return fractional_gradient_into<3>(grad_output, self, kernel_size, output_size, indices,
                                     grad_input);
}
at::Tensor GRAFT_OPERATOR(fractional_max_pool3d_backward)(const at::Tensor& grad_output,
                                                          const at::Tensor& self,
                                                          at::IntArrayRef kernel_size,
                                                          at::IntArrayRef output_size,
                                                          const at::Tensor& indices) {
  return fractional_gradient<3>(grad_output, self, kernel_size, output_size, indices);
}

// Whole, since upstream's shape function of it reads output sizes that are not there.
TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  namespace op = at::_ops;
  implement<op::fractional_max_pool2d_backward, &fractional_gradient<2>>(m);
  implement<op::fractional_max_pool2d_backward_grad_input, &fractional_gradient_into<2>>(m);
}

}  // namespace graft::binding
