// src/torch/ops/activation.cpp: activations and losses whose upstream kernels are bound to devices.
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>
#include <c10/util/string_view.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/operands.h"
#include "torch/version/resize.h"

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
  require_floating(self);
  require_same_dtype(self, output);
  require_same_dtype(self, buffer);
  const bool shared = output.is_alias_of(self) || buffer.is_alias_of(self);
  const at::Tensor input = shared ? self.clone() : self;
  output.resize_(input.sizes());
  buffer.resize_(input.sizes(), at::MemoryFormat::Contiguous);
  run_unary(op_row<"log_sigmoid">(), output, input);
  at::abs_out(buffer, input).neg_().exp_();
  return {output, buffer};
}

// The buffer spares CPUs a second exponential; here it stays empty.
std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(log_sigmoid_forward)(const at::Tensor& self) {
  at::Tensor output = at::empty_like(self), buffer = at::empty({0}, self.options());
  run_unary(op_row<"log_sigmoid">(), output, self);
  return {output, buffer};
}

// The iterator of PyTorch's meta function borrows halves that died with that function.
void GRAFT_STRUCTURED(glu_out)(const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim()), half = self.size(wrapped) / 2;
  const at::Tensor value = self.narrow(wrapped, 0, half), gate = self.narrow(wrapped, half, half);
  run_pointwise(at::TensorIterator::borrowing_binary_op(out, value, gate), op_row<"glu">());
}

at::Tensor& GRAFT_OPERATOR(glu_backward_grad_input)(const at::Tensor& grad_output,
                                                    const at::Tensor& self, int64_t dim,
                                                    at::Tensor& grad_input) {
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(wrapped);
  TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", wrapped, " is size ",
              size);
  native::resize_output(grad_input, self.sizes());
  const int64_t half = size / 2;
  const auto iterator = at::TensorIteratorConfig()
                            .add_owned_output(grad_input.narrow(wrapped, 0, half))
                            .add_owned_output(grad_input.narrow(wrapped, half, half))
                            .add_const_input(grad_output)
                            .add_owned_const_input(self.narrow(wrapped, 0, half))
                            .add_owned_const_input(self.narrow(wrapped, half, half))
                            .resize_outputs(false)
                            .build();
  run_pointwise(iterator, op_row<"glu_gradients">());
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(glu_backward)(const at::Tensor& grad_output, const at::Tensor& self,
                                        int64_t dim) {
  at::Tensor grad_input = at::empty({0}, self.options());
  return GRAFT_OPERATOR(glu_backward_grad_input)(grad_output, self, dim, grad_input);
}

at::Tensor& GRAFT_OPERATOR(rrelu_with_noise_out)(const at::Tensor& self, at::Tensor& noise,
                                                 const at::Scalar& lower, const at::Scalar& upper,
                                                 bool training,
                                                 std::optional<at::Generator> generator,
                                                 at::Tensor& out) {
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              " noise.shape = ", noise.sizes());
  require_floating(self);
  const double low = lower.toDouble(), high = upper.toDouble();
  if (!training) return at::leaky_relu_out(out, self, (low + high) / 2);
  require_fit(lower, at::toOpMathType(self.scalar_type()));
  require_fit(upper, at::toOpMathType(self.scalar_type()));
  check_scalar_type(out, self.scalar_type());
  check_scalar_type(noise, self.scalar_type());
  if (self.numel() != 0) {
    noise.uniform_(low, high, generator).masked_fill_(self.le(0).logical_not_(), 1);
  }
  return at::mul_out(out, self, noise);
}

at::Tensor GRAFT_OPERATOR(rrelu_with_noise)(const at::Tensor& self, at::Tensor& noise,
                                            const at::Scalar& lower, const at::Scalar& upper,
                                            bool training, std::optional<at::Generator> generator) {
  at::Tensor out = at::empty_like(self);
  return GRAFT_OPERATOR(rrelu_with_noise_out)(self, noise, lower, upper, training, generator, out);
}

at::Tensor& GRAFT_OPERATOR(rrelu_with_noise_)(at::Tensor& self, at::Tensor& noise,
                                              const at::Scalar& lower, const at::Scalar& upper,
                                              bool training,
                                              std::optional<at::Generator> generator) {
  return GRAFT_OPERATOR(rrelu_with_noise_out)(self, noise, lower, upper, training, generator, self);
}

at::Tensor& GRAFT_OPERATOR(log_sigmoid_backward_grad_input)(const at::Tensor& grad_output,
                                                            const at::Tensor& self,
                                                            const at::Tensor&,
                                                            at::Tensor& grad_input) {
  run_pointwise(iterator_of(grad_input, self, grad_output), op_row<"log_sigmoid_backward">());
  return grad_input;
}

at::Tensor GRAFT_OPERATOR(log_sigmoid_backward)(const at::Tensor& grad_output,
                                                const at::Tensor& self, const at::Tensor& buffer) {
  at::Tensor grad_input = at::empty_like(grad_output);
  return GRAFT_OPERATOR(log_sigmoid_backward_grad_input)(grad_output, self, buffer, grad_input);
}

}  // namespace graft::binding
