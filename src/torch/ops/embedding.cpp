// src/torch/ops/embedding.cpp: the gradient of an embedding table; its forward is index_select.
#include "kernels/index/embedding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

at::Tensor GRAFT_OPERATOR(embedding_dense_backward)(const at::Tensor& grad_output,
                                                    const at::Tensor& indices, int64_t num_weights,
                                                    int64_t padding_idx, bool scale_grad_by_freq) {
  const at::Tensor gradient = grad_output.contiguous();
  const at::Tensor rows = indices.contiguous();
  const int64_t n = grad_output.size(-1);
  at::Tensor grad_weight = at::empty({num_weights, n}, grad_output.options());
  if (rows.numel() == 0 || grad_weight.numel() == 0) return grad_weight.zero_();
  // A complex number is summed as two real ones.
  const auto lines = [](const at::Tensor& tensor, int64_t count) {
    return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).view({count, -1});
  };
  embedding_dense_backward(stream_of(gradient), view_of(lines(grad_weight, num_weights)),
                           view_of(lines(gradient.resolve_conj(), rows.numel())),
                           view_of(rows.view({rows.numel()})), padding_idx, scale_grad_by_freq);
  return grad_weight;
}

}  // namespace graft::binding
