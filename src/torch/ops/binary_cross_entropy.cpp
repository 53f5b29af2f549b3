// src/torch/ops/binary_cross_entropy.cpp: the loss of probabilities, and its gradient.
#include <ATen/ops/empty_like.h>

#include "kernels/loss/loss.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/device_assertion.h"
#include "torch/tensor/out_argument.h"
#include "torch/tensor/reduced_loss.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

// Every other number keeps the single losses.
LossReduction known_reduction(int64_t reduction) {
  const bool known = reduction == at::Reduction::Mean || reduction == at::Reduction::Sum;
  return known ? static_cast<LossReduction>(reduction) : LossReduction::kNone;
}

}  // namespace

at::Tensor GRAFT_OPERATOR(binary_cross_entropy)(const at::Tensor& self, const at::Tensor& target,
                                                const std::optional<at::Tensor>& weight,
                                                int64_t reduction) {
  at::Tensor loss = at::empty_like(self);
  const auto iterator = iterator_of(loss.squeeze(), self.squeeze(), target.squeeze());
  require_floating(self);
  if (iterator.numel() > 0) {
    require_elements_within(self, 0, 1, "all elements of input should be between 0 and 1");
    require_elements_within(target, 0, 1, "all elements of target should be between 0 and 1");
  }
  run_pointwise(iterator, op_row<"binary_cross_entropy">());
  if (weight.has_value() && weight->defined()) loss.mul_(*weight);
  return reduced(loss, known_reduction(reduction));
}

at::Tensor& GRAFT_OPERATOR(binary_cross_entropy_out)(const at::Tensor& self,
                                                     const at::Tensor& target,
                                                     const std::optional<at::Tensor>& weight,
                                                     int64_t reduction, at::Tensor& out) {
  require_same_dtype(self, out);
  require_separate(out);
  return store(out, GRAFT_OPERATOR(binary_cross_entropy)(self, target, weight, reduction));
}

at::Tensor& GRAFT_OPERATOR(binary_cross_entropy_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, at::Tensor& grad_input) {
  native::resize_output(grad_input, self.sizes());
  const auto iterator =
      iterator_of(grad_input.squeeze(), grad_output.squeeze(), self.squeeze(), target.squeeze());
  run_pointwise(iterator, op_row<"binary_cross_entropy_backward">());
  if (weight.has_value() && weight->defined()) grad_input.mul_(*weight);
  if (known_reduction(reduction) == LossReduction::kMean) grad_input.div_(self.numel());
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(binary_cross_entropy_backward)(const at::Tensor& grad_output,
                                                         const at::Tensor& self,
                                                         const at::Tensor& target,
                                                         const std::optional<at::Tensor>& weight,
                                                         int64_t reduction) {
  at::Tensor grad_input = at::empty_like(self);
  return GRAFT_OPERATOR(binary_cross_entropy_backward_grad_input)(grad_output, self, target, weight,
                                                                  reduction, grad_input);
}

}  // namespace graft::binding
