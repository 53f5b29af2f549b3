// src/torch/ops/patches.cpp: cutting images into patches and summing patches up, with
// Tensor.unfold.
#include "kernels/resample/patches.h"

#include <ATen/ops/empty.h>

#include <array>

#include "kernels/resample/resample.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/patches.h"

namespace graft::binding {
namespace {

void check_pairs(at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                 at::IntArrayRef stride) {
  TORCH_CHECK(kernel.size() == 2, "It is expected kernel_size equals to 2, but got size ",
              kernel.size());
  TORCH_CHECK(dilation.size() == 2, "It is expected dilation equals to 2, but got size ",
              dilation.size());
  TORCH_CHECK(padding.size() == 2, "It is expected padding equals to 2, but got size ",
              padding.size());
  TORCH_CHECK(stride.size() == 2, "It is expected stride equals to 2, but got size ",
              stride.size());
}

// Patches of an image, and how many there are.
struct Patches {
  PatchWindow window;
  std::array<int64_t, 2> count;

  Patches(at::IntArrayRef size, at::IntArrayRef kernel, at::IntArrayRef dilation,
          at::IntArrayRef padding, at::IntArrayRef stride) {
    for (size_t d = 0; d < 2; ++d) {
      count[d] = (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
      window.stride[d] = stride[d], window.padding[d] = padding[d];
      window.dilation[d] = dilation[d];
    }
  }
};

}  // namespace

at::Tensor& GRAFT_OPERATOR(im2col_out)(const at::Tensor& self, at::IntArrayRef kernel,
                                       at::IntArrayRef dilation, at::IntArrayRef padding,
                                       at::IntArrayRef stride, at::Tensor& out) {
  check_pairs(kernel, dilation, padding, stride);
  native::im2col_shape_check(self, at::Tensor(), kernel[0], kernel[1], dilation[0], dilation[1],
                             padding[0], padding[1], stride[0], stride[1]);
  require(!at::isIntegralType(self.scalar_type(), false));
  check_scalar_type(out, self.scalar_type());
  const bool batched = self.dim() == 4;
  const at::Tensor input = batched ? self : self.unsqueeze(0);
  const int64_t n = input.size(0), c = input.size(1);
  const Patches patches(input.sizes().slice(2), kernel, dilation, padding, stride);
  const auto [oh, ow] = patches.count;
  const at::DimVector sizes{n, c * kernel[0] * kernel[1], oh * ow};
  out.resize_(at::IntArrayRef(sizes).slice(batched ? 0 : 1));
  if (out.numel() == 0) return out;
  const at::Tensor target = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  unfold(stream_of(self), view_of(target.view({n, c, kernel[0], kernel[1], oh, ow})),
         view_of(input), patches.window);
  if (!target.is_same(out)) out.copy_(target);
  return out;
}
at::Tensor GRAFT_OPERATOR(im2col)(const at::Tensor& self, at::IntArrayRef kernel,
                                  at::IntArrayRef dilation, at::IntArrayRef padding,
                                  at::IntArrayRef stride) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(im2col_out)(self, kernel, dilation, padding, stride, out);
}

at::Tensor& GRAFT_OPERATOR(col2im_out)(const at::Tensor& self, at::IntArrayRef output_size,
                                       at::IntArrayRef kernel, at::IntArrayRef dilation,
                                       at::IntArrayRef padding, at::IntArrayRef stride,
                                       at::Tensor& out) {
  TORCH_CHECK(output_size.size() == 2, "It is expected output_size equals to 2, but got size ",
              output_size.size());
  check_pairs(kernel, dilation, padding, stride);
  native::col2im_shape_check(self, at::Tensor(), output_size[0], output_size[1], kernel[0],
                             kernel[1], dilation[0], dilation[1], padding[0], padding[1], stride[0],
                             stride[1]);
  require(!at::isIntegralType(self.scalar_type(), false));
  check_scalar_type(out, self.scalar_type());
  const bool batched = self.dim() == 3;
  const at::Tensor input = batched ? self : self.unsqueeze(0);
  const int64_t n = input.size(0), c = input.size(1) / (kernel[0] * kernel[1]);
  const Patches patches(output_size, kernel, dilation, padding, stride);
  const auto [oh, ow] = patches.count;
  const at::DimVector sizes{n, c, output_size[0], output_size[1]};
  out.resize_(at::IntArrayRef(sizes).slice(batched ? 0 : 1));
  if (out.numel() == 0) return out;
  const at::Tensor columns = input.contiguous().view({n, c, kernel[0], kernel[1], oh, ow});
  const at::Tensor to = batched ? out : out.unsqueeze(0);
  fold(stream_of(self), view_of(to), view_of(columns), patches.window);
  return out;
}
at::Tensor GRAFT_OPERATOR(col2im)(const at::Tensor& self, at::IntArrayRef output_size,
                                  at::IntArrayRef kernel, at::IntArrayRef dilation,
                                  at::IntArrayRef padding, at::IntArrayRef stride) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(col2im_out)(self, output_size, kernel, dilation, padding, stride, out);
}

// grad: the pieces of Tensor.unfold along dim, their elements in the last dimension.
void unfold_backward_stub(at::Tensor& grad_in, const at::Tensor& grad, int64_t dim, int64_t size,
                          int64_t step) {
  if (grad_in.numel() == 0 || grad.numel() == 0) return;
  if (grad_in.dim() == 0) {
    grad_in.copy_(grad.reshape({}));
    return;
  }
  const at::Tensor pieces = grad.movedim(dim, -1);  // [..., size, count]
  const LinearMap map =
      patch_taps({grad_in.size(dim), grad.size(dim), size, 1, 0, step}).transposed();
  const at::Tensor to = grad_in.movedim(dim, -1);
  resample(stream_of(grad), view_of(to), view_of(pieces.flatten(-2)), {&map, 1});
}

void fill_patch_stubs() {
  native::unfold_backward_stub.set_privateuse1_dispatch_ptr(&unfold_backward_stub);
}

}  // namespace graft::binding
