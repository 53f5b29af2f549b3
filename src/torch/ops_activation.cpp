// src/torch/ops_activation.cpp: activations and losses whose upstream kernels are bound to devices.
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/string_view.h>

#include "operators.h"
#include "torch/guarded.h"
#include "torch/operands.h"
#include "torch/stubs.h"
#include "torch/tensor_iterator.h"

namespace graft::binding {
namespace {

bool by_tanh(c10::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh",
              "approximate argument must be either none or tanh.");
  return approximate == "tanh";
}

void run_unary(const Op& op, at::Tensor& output, const at::Tensor& input) {
  const auto iterator = at::TensorIterator::unary_op(output, input);
  run_pointwise(iterator, op);
}

void run_binary(const Op& op, at::Tensor& output, const at::Tensor& a, const at::Tensor& b) {
  const auto iterator = at::TensorIterator::borrowing_binary_op(output, a, b);
  run_pointwise(iterator, op);
}

}  // namespace

void GRAFT_STRUCTURED(gelu_out)(const at::Tensor&, c10::string_view approximate,
                                const at::Tensor&) {
  run_pointwise(*this, by_tanh(approximate) ? op_row<"gelu_tanh">() : op_row<"gelu">());
}

void GRAFT_STRUCTURED(gelu_backward_grad_input)(const at::Tensor&, const at::Tensor&,
                                                c10::string_view approximate, const at::Tensor&) {
  run_pointwise(*this,
                by_tanh(approximate) ? op_row<"gelu_tanh_backward">() : op_row<"gelu_backward">());
}

std::tuple<at::Tensor&, at::Tensor&> GRAFT_OPERATOR(log_sigmoid_forward_output)(
    const at::Tensor& self, at::Tensor& output, at::Tensor& buffer) {
  run_unary(op_row<"log_sigmoid">(), output, self);
  return {output, buffer};
}

// The buffer spares CPUs a second exponential; here it stays empty.
std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(log_sigmoid_forward)(const at::Tensor& self) {
  at::Tensor output = at::empty_like(self), buffer = at::empty({0}, self.options());
  GRAFT_OPERATOR(log_sigmoid_forward_output)(self, output, buffer);
  return {output, buffer};
}

at::Tensor& GRAFT_OPERATOR(log_sigmoid_backward_grad_input)(const at::Tensor& grad_output,
                                                            const at::Tensor& self,
                                                            const at::Tensor&,
                                                            at::Tensor& grad_input) {
  run_binary(op_row<"log_sigmoid_backward">(), grad_input, self, grad_output);
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(log_sigmoid_backward)(const at::Tensor& grad_output,
                                                const at::Tensor& self, const at::Tensor& buffer) {
  at::Tensor grad_input = at::empty_like(grad_output);
  return GRAFT_OPERATOR(log_sigmoid_backward_grad_input)(grad_output, self, buffer, grad_input);
}

}  // namespace graft::binding
