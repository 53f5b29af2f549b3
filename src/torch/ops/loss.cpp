// src/torch/ops/loss.cpp: the negative log-likelihood loss of vectors and images.
#include "kernels/loss/loss.h"

#include <ATen/ops/empty.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/reduced_loss.h"

namespace graft::binding {
namespace {

void check_gradient(const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
                    const at::Tensor& total_weight, int64_t reduction) {
  check_scalar_type(grad_output, self.scalar_type());
  TORCH_CHECK(total_weight.numel() == 1,
              "expected total_weight to be a single element tensor, got: ", total_weight.sizes(),
              " (", total_weight.numel(), " elements)");
  const bool per_element = reduction_of(reduction) == LossReduction::kNone;
  TORCH_CHECK(per_element ? grad_output.sizes() == target.sizes() : grad_output.numel() == 1,
              "Expected a ", per_element ? "tensor of the target's size " : "single element for ",
              "grad_output and target ", target.sizes(), ", but got: ", grad_output.sizes());
}

// The dimensions from the given one on as one, which they are without a copy where they merge.
at::Tensor flat_from(const at::Tensor& tensor, int64_t first) {
  return tensor.dim() > first + 1 ? tensor.flatten(first) : tensor;
}

void forward(const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight,
             int64_t reduction, int64_t ignore_index, const at::Tensor& output,
             const at::Tensor& total_weight) {
  TORCH_CHECK_INDEX(!output.is_same(self) && !total_weight.is_same(self),
                    "nll_loss: expected outputs that are not the input, which got an output's "
                    "sizes: give another tensor");
  require_floating(self);
  require(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte);
  if (weight.defined()) check_scalar_type(weight, self.scalar_type());
  TORCH_CHECK_INDEX(target.numel() == 0 || self.size(self.dim() == 1 ? 0 : 1) > 0,
                    "Target is out of bounds: there is no class.");
  const at::Tensor scale = contiguous(weight);
  const OptionalView scale_view(scale);
  nll_loss(stream_of(self), view_of(output), view_of(total_weight), view_of(flat_from(self, 2)),
           view_of(flat_from(target, 1)), scale_view.get(), reduction_of(reduction), ignore_index);
}

void backward(const at::Tensor& grad_output, const at::Tensor& target, const at::Tensor& weight,
              int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight,
              const at::Tensor& grad_input) {
  require_floating(grad_input);
  const at::Tensor scale = contiguous(weight);
  const OptionalView scale_view(scale);
  nll_loss_backward(stream_of(grad_output), view_of(grad_input), view_of(flat_from(grad_output, 1)),
                    view_of(flat_from(target, 1)), scale_view.get(), view_of(total_weight),
                    reduction_of(reduction), ignore_index);
}

void check_images(const at::Tensor& input, const at::Tensor& target, const at::Tensor& weight) {
  TORCH_CHECK(target.dim() == 3, "only batches of spatial targets supported (3D tensors)",
              " but got targets of dimension: ", target.dim());
  TORCH_CHECK(input.dim() == 4, "only batches of spatial inputs supported (4D tensors), ",
              "but got input of dimension: ", input.dim());
  TORCH_CHECK(!weight.defined() || weight.numel() == input.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(input.size(0) == target.size(0) && input.size(2) == target.size(1) &&
                  input.size(3) == target.size(2),
              "size mismatch (got input: ", input.sizes(), " , target: ", target.sizes());
}

}  // namespace

void GRAFT_STRUCTURED(nll_loss_forward_output)(const at::Tensor& self, const at::Tensor& target,
                                               at::OptionalTensorRef weight, int64_t reduction,
                                               int64_t ignore_index, const at::Tensor& output,
                                               const at::Tensor& total_weight) {
  forward(self, target, or_undefined(weight), reduction, ignore_index, output, total_weight);
}

void GRAFT_STRUCTURED(nll_loss_backward_grad_input)(const at::Tensor& grad_output,
                                                    const at::Tensor&, const at::Tensor& target,
                                                    at::OptionalTensorRef weight, int64_t reduction,
                                                    int64_t ignore_index,
                                                    const at::Tensor& total_weight,
                                                    const at::Tensor& grad_input) {
  backward(grad_output, target, or_undefined(weight), reduction, ignore_index, total_weight,
           grad_input);
}

std::tuple<at::Tensor&, at::Tensor&> GRAFT_OPERATOR(nll_loss2d_forward_output)(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
    int64_t reduction, int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  const at::Tensor scale = or_undefined(weight);
  check_images(self, target, scale);
  require(target.scalar_type() == at::kLong);
  require_same_dtype(self, output);
  require_same_dtype(self, total_weight);
  const bool per_element = reduction_of(reduction) == LossReduction::kNone;
  output.resize_(per_element ? target.sizes() : at::IntArrayRef{});
  total_weight.resize_({});
  forward(self, target, scale, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(nll_loss2d_forward)(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
    int64_t reduction, int64_t ignore_index) {
  at::Tensor output = at::empty({0}, self.options()), total = at::empty({0}, self.options());
  GRAFT_OPERATOR(nll_loss2d_forward_output)
  (self, target, weight, reduction, ignore_index, output, total);
  return {output, total};
}

at::Tensor& GRAFT_OPERATOR(nll_loss2d_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index,
    const at::Tensor& total_weight, at::Tensor& grad_input) {
  const at::Tensor scale = or_undefined(weight);
  check_images(self, target, scale);
  check_gradient(grad_output, self, target, total_weight, reduction);
  check_scalar_type(grad_input, self.scalar_type());
  grad_input.resize_as_(self);
  backward(grad_output, target, scale, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(nll_loss2d_backward)(const at::Tensor& grad_output,
                                               const at::Tensor& self, const at::Tensor& target,
                                               const std::optional<at::Tensor>& weight,
                                               int64_t reduction, int64_t ignore_index,
                                               const at::Tensor& total_weight) {
  at::Tensor grad_input = at::empty(self.sizes(), self.options());
  return GRAFT_OPERATOR(nll_loss2d_backward_grad_input)(
      grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}

}  // namespace graft::binding
