// src/torch/ops/composed_attention.h: attention made of ATen's operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace graft::binding {

// A call as kernels/attention/attention.h describes it, where the device lacks those kernels: each
// operator runs on the device or falls back, counted. The scores exist whole.
struct ComposedAttention {
  at::Tensor query, key, value;  // of one floating dtype; heads may share a key head
  at::Tensor bias;               // undefined for none; expands to the scores
  double scale = 1;
  bool causal = false;
  double dropout = 0;
  at::Tensor kept;  // bool, of the scores' sizes: which weights stay; made by forward() if dropout

  // Output and logsumexp, as attention() gives them, but for the output's strides.
  std::tuple<at::Tensor, at::Tensor> forward();

  // Gradients of query, key and value in their dtype. REQUIRES: kept is forward()'s if dropout.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(const at::Tensor& grad_output) const;

 private:
  at::Tensor scores() const;
  at::Tensor by_query_head(const at::Tensor& tensor) const;
  at::Tensor by_key_head(const at::Tensor& gradient) const;
  at::Tensor dropped(const at::Tensor& weights) const;
};

}  // namespace graft::binding
