// src/torch/ops_assertion.cpp: assertions on the device, and the loss that needs one.
#include <ATen/native/Resize.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ne.h>

#include "kernels/assertion.h"
#include "kernels/loss.h"
#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"
#include "torch/stubs.h"
#include "torch/tensor_iterator.h"

namespace graft::binding {
namespace {

void assert_nonzero(const at::Tensor& self, std::string_view message) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
  const at::Tensor truth = self.ne(0);
  require_within(stream_of(self), view_of(truth), view_of(truth), 1, 1, message);
}

void require_chances(const at::Tensor& tensor, std::string_view message) {
  if (tensor.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(tensor.detach());
  require_within(stream_of(tensor), view_of(smallest), view_of(largest), 0, 1, message);
}

at::Tensor reduced(const at::Tensor& loss, int64_t reduction) {
  switch (static_cast<LossReduction>(reduction)) {
    case LossReduction::kMean:
      return loss.mean();
    case LossReduction::kSum:
      return loss.sum();
    default:
      return loss;
  }
}

}  // namespace

void GRAFT_OPERATOR(_assert_async)(const at::Tensor& self) {
  assert_nonzero(self, "Expected Tensor with single nonzero value, but got zero");
}

void GRAFT_OPERATOR(_assert_async_msg)(const at::Tensor& self, c10::string_view message) {
  assert_nonzero(self, message.empty() ? "Assertion is failed" : std::string_view(message));
}

at::Tensor GRAFT_OPERATOR(binary_cross_entropy)(const at::Tensor& self, const at::Tensor& target,
                                                const std::optional<at::Tensor>& weight,
                                                int64_t reduction) {
  at::Tensor loss = at::empty_like(self);
  auto iterator = at::TensorIteratorConfig()
                      .add_owned_output(loss.squeeze())
                      .add_owned_const_input(self.squeeze())
                      .add_owned_const_input(target.squeeze())
                      .build();
  require_chances(self, "all elements of input should be between 0 and 1");
  require_chances(target, "all elements of target should be between 0 and 1");
  run_pointwise(iterator, op_row<"binary_cross_entropy">());
  if (weight.has_value() && weight->defined()) loss.mul_(*weight);
  return reduced(loss, reduction);
}

at::Tensor& GRAFT_OPERATOR(binary_cross_entropy_out)(const at::Tensor& self,
                                                     const at::Tensor& target,
                                                     const std::optional<at::Tensor>& weight,
                                                     int64_t reduction, at::Tensor& out) {
  const at::Tensor loss = GRAFT_OPERATOR(binary_cross_entropy)(self, target, weight, reduction);
  at::native::resize_output(out, loss.sizes());
  return out.copy_(loss);
}

at::Tensor& GRAFT_OPERATOR(binary_cross_entropy_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, at::Tensor& grad_input) {
  at::native::resize_output(grad_input, self.sizes());
  auto iterator = at::TensorIteratorConfig()
                      .add_owned_output(grad_input.squeeze())
                      .add_owned_const_input(grad_output.squeeze())
                      .add_owned_const_input(self.squeeze())
                      .add_owned_const_input(target.squeeze())
                      .build();
  run_pointwise(iterator, op_row<"binary_cross_entropy_backward">());
  if (weight.has_value() && weight->defined()) grad_input.mul_(*weight);
  if (static_cast<LossReduction>(reduction) == LossReduction::kMean) grad_input.div_(self.numel());
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
