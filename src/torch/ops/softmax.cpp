// src/torch/ops/softmax.cpp: softmax, log_softmax and their gradients.
#include "kernels/norm/softmax.h"

#include <ATen/WrapDimUtils.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

void forward(const at::Tensor& input, int64_t dim, const at::Tensor& output, bool log) {
  if (output.numel() == 0) return;
  require_floating(output);
  const int axis = static_cast<int>(at::maybe_wrap_dim(dim, input.dim()));
  softmax(stream_of(input), view_of(output), view_of(input), axis, log);
}

void backward(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
              const at::Tensor& grad_input, bool log) {
  TORCH_CHECK(output.sizes() == grad.sizes() && output.scalar_type() == grad.scalar_type(),
              "expected output to be like grad_output, ", grad.toString(), grad.sizes(),
              ", but got ", output.toString(), output.sizes());
  if (grad_input.numel() == 0) return;
  require_floating(grad);
  require_same_dtype(grad, output);
  const int axis = static_cast<int>(at::maybe_wrap_dim(dim, grad.dim()));
  softmax_backward(stream_of(grad), view_of(grad_input), view_of(grad), view_of(output), axis, log);
}

}  // namespace

void GRAFT_STRUCTURED(_softmax_out)(const at::Tensor& self, int64_t dim, bool,
                                    const at::Tensor& out) {
  forward(self, dim, out, false);
}

void GRAFT_STRUCTURED(_log_softmax_out)(const at::Tensor& self, int64_t dim, bool,
                                        const at::Tensor& out) {
  forward(self, dim, out, true);
}

void GRAFT_STRUCTURED(_softmax_backward_data_out)(const at::Tensor& grad_output,
                                                  const at::Tensor& output, int64_t dim,
                                                  at::ScalarType, const at::Tensor& grad_input) {
  backward(grad_output, output, dim, grad_input, false);
}

void GRAFT_STRUCTURED(_log_softmax_backward_data_out)(const at::Tensor& grad_output,
                                                      const at::Tensor& output, int64_t dim,
                                                      at::ScalarType, const at::Tensor& out) {
  backward(grad_output, output, dim, out, true);
}

}  // namespace graft::binding
