// src/torch/ops/composed_attention.cpp: attention made of ATen's operators.
#include "torch/ops/composed_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <limits>

#include "torch/tensor/opmath.h"

namespace graft::binding {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// A row that sees nothing has no weights.
at::Tensor weights_of(const at::Tensor& scores, const at::Tensor& logsumexp) {
  const at::Tensor sums = logsumexp.unsqueeze(-1);
  return (scores - sums).exp_().masked_fill_(sums.eq(kNothing), 0);
}

}  // namespace

at::Tensor ComposedAttention::by_query_head(const at::Tensor& tensor) const {
  const int64_t group = query.size(1) / key.size(1);
  return group == 1 ? widened(tensor) : widened(tensor).repeat_interleave(group, 1);
}

at::Tensor ComposedAttention::by_key_head(const at::Tensor& gradient) const {
  const int64_t group = query.size(1) / key.size(1);
  if (group == 1) return gradient;
  return gradient.unflatten(1, {key.size(1), group}).sum(2);
}

at::Tensor ComposedAttention::scores() const {
  at::Tensor scores = at::matmul(widened(query), by_query_head(key).transpose(-2, -1)).mul_(scale);
  if (bias.defined()) scores = scores + bias;
  if (causal) {
    const at::Tensor later =
        at::ones({query.size(2), key.size(2)}, scores.options().dtype(at::kBool));
    scores.masked_fill_(later.triu(1), kNothing);
  }
  return scores;
}

at::Tensor ComposedAttention::dropped(const at::Tensor& weights) const {
  return dropout > 0 ? weights * kept * (dropout < 1 ? 1 / (1 - dropout) : 0.0) : weights;
}

std::tuple<at::Tensor, at::Tensor> ComposedAttention::forward() {
  const at::Tensor all = scores(), logsumexp = all.logsumexp(-1);
  if (dropout > 0)
    kept = at::empty_like(all, all.options().dtype(at::kBool)).bernoulli_(1 - dropout);
  const at::Tensor output = at::matmul(dropped(weights_of(all, logsumexp)), by_query_head(value));
  return {output.to(query.scalar_type()), logsumexp};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> ComposedAttention::backward(
    const at::Tensor& grad_output) const {
  const at::Tensor all = scores(), weights = weights_of(all, all.logsumexp(-1));
  const at::Tensor above = widened(grad_output);
  const at::Tensor to_value = at::matmul(dropped(weights).transpose(-2, -1), above);
  const at::Tensor to_weights = dropped(at::matmul(above, by_query_head(value).transpose(-2, -1)));
  const at::Tensor to_scores =
      weights * (to_weights - (to_weights * weights).sum(-1, /*keepdim=*/true)) * scale;
  const at::Tensor to_query = at::matmul(to_scores, by_query_head(key));
  const at::Tensor to_key = at::matmul(to_scores.transpose(-2, -1), widened(query));
  return {to_query.to(query.scalar_type()), by_key_head(to_key).to(key.scalar_type()),
          by_key_head(to_value).to(value.scalar_type())};
}

}  // namespace graft::binding
