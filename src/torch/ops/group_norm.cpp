// src/torch/ops/group_norm.cpp: kernels of the stubs of group normalisation.
#include "kernels/norm/group_norm.h"

#include <array>
#include <tuple>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/group_norm.h"

namespace graft::binding {
namespace {

void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t n,
             int64_t channels, int64_t length, int64_t groups, double epsilon, at::Tensor& y,
             at::Tensor& mean, at::Tensor& rstd) {
  const at::Tensor input = contiguous(x), scale = contiguous(weight), shift = contiguous(bias);
  const at::Tensor output = contiguous(y);
  const OptionalView weight_view(scale), bias_view(shift);
  group_norm(stream_of(x), view_of(output), view_of(mean), view_of(rstd), view_of(input),
             weight_view.get(), bias_view.get(), {n, channels, length, groups}, epsilon);
  if (!output.is_same(y)) y.copy_(output);
}

void backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& mean,
              const at::Tensor& rstd, const at::Tensor& weight, int64_t n, int64_t channels,
              int64_t length, int64_t groups, at::Tensor& dx, at::Tensor& dweight,
              at::Tensor& dbias) {
  const at::Tensor gradient = contiguous(dy), input = contiguous(x), scale = contiguous(weight),
                   to = contiguous(dx);
  const at::Tensor middle = contiguous(mean), spread = contiguous(rstd);
  const OptionalView dx_view(to), dweight_view(dweight), dbias_view(dbias), weight_view(scale);
  group_norm_backward(stream_of(x), {dx_view.get(), dweight_view.get(), dbias_view.get()},
                      view_of(gradient), view_of(input), view_of(middle), view_of(spread),
                      weight_view.get(), {n, channels, length, groups});
  if (to.defined() && !to.is_same(dx)) dx.copy_(to);
}

// What autograd and native_group_norm guarantee, and a caller by name does not.
void check_sizes(const at::Tensor& input, const at::Tensor& weight, int64_t n, int64_t channels,
                 int64_t length, int64_t groups) {
  TORCH_CHECK(n >= 0 && channels >= 0 && length >= 0 && groups > 0 && channels % groups == 0,
              "Expected number of channels in input to be divisible by num_groups, but got N = ", n,
              ", C = ", channels, ", HxW = ", length, " and num_groups = ", groups);
  TORCH_CHECK(input.numel() == n * channels * length, "Expected input of ", n, " x ", channels,
              " x ", length, " elements, but got ", input.sizes());
  TORCH_CHECK(!weight.defined() || weight.numel() == channels,
              "Expected weight to be a vector of size ", channels, ", but got ", weight.sizes());
}

void check_gradient(const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
                    const at::Tensor& rstd, const at::Tensor& weight, int64_t n, int64_t channels,
                    int64_t length, int64_t groups) {
  check_sizes(input, weight, n, channels, length, groups);
  TORCH_CHECK(grad_out.sizes() == input.sizes(), "Expected grad_out of the size ", input.sizes(),
              ", but got ", grad_out.sizes());
  TORCH_CHECK(mean.numel() == n * groups && rstd.numel() == n * groups,
              "Expected mean.numel() == N * group to be true, but got false.");
}

}  // namespace

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Upstream's own functions, which ask every device but the CPU for row-major images.
Three GRAFT_OPERATOR(native_group_norm)(const at::Tensor& input,
                                        const std::optional<at::Tensor>& weight,
                                        const std::optional<at::Tensor>& bias, int64_t n,
                                        int64_t channels, int64_t length, int64_t groups,
                                        double epsilon) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  check_sizes(input, scale, n, channels, length, groups);
  require_floating(input);
  require_parameters(input, {&scale, &shift});
  return native::native_group_norm(input.contiguous(), weight, bias, n, channels, length, groups,
                                   epsilon);
}
Three GRAFT_OPERATOR(native_group_norm_backward)(const at::Tensor& grad_out,
                                                 const at::Tensor& input, const at::Tensor& mean,
                                                 const at::Tensor& rstd,
                                                 const std::optional<at::Tensor>& weight, int64_t n,
                                                 int64_t channels, int64_t length, int64_t groups,
                                                 std::array<bool, 3> output_mask) {
  check_gradient(grad_out, input, mean, rstd, or_undefined(weight), n, channels, length, groups);
  require_floating(input);
  require_same_dtype(input, grad_out);
  return native::native_group_norm_backward(grad_out.contiguous(), input.contiguous(), mean, rstd,
                                            weight, n, channels, length, groups, output_mask);
}

void fill_group_norm_stubs() {
  native::GroupNormKernel.set_privateuse1_dispatch_ptr(&forward);
  native::GroupNormBackwardKernel.set_privateuse1_dispatch_ptr(&backward);
}

}  // namespace graft::binding
