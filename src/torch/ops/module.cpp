// src/torch/ops/module.cpp: operators of torch.nn's modules that are made of other operators.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_nested_from_padded.h>
#include <ATen/ops/_weight_norm_differentiable_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/norm_except_dim.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <array>
#include <cmath>
#include <limits>

#include "operators.h"
#include "torch/dispatch/guarded.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;

// A nested tensor with zeros where its parts have no rows; any other as it is.
at::Tensor padded(const at::Tensor& tensor) {
  return tensor.is_nested() ? tensor.to_padded_tensor(0) : tensor;
}

// [batch, length]: where a nested tensor of that batch has rows.
at::Tensor has_row(const at::Tensor& nested, int64_t length) {
  const at::Tensor lengths = nested._nested_tensor_size().select(1, 0).unsqueeze(1);
  return at::arange(length, lengths.options()).lt(lengths).to(nested.device());
}

// Query, key and value as [batch, heads, length, size of a head].
std::array<at::Tensor, 3> projected(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const at::Tensor& weight,
                                    const at::Tensor& bias, int64_t heads) {
  std::vector<at::Tensor> parts;
  if (query.is_same(key) && key.is_same(value)) {
    parts = padded(at::linear(query, weight, bias)).chunk(3, -1);
  } else {
    const auto weights = weight.chunk(3), biases = bias.chunk(3);
    const std::array<at::Tensor, 3> inputs = {query, key, value};
    for (size_t i = 0; i < 3; ++i) {
      parts.push_back(padded(at::linear(inputs[i], weights[i], biases[i])));
    }
  }
  std::array<at::Tensor, 3> found;
  for (size_t i = 0; i < 3; ++i) {
    found[i] = parts[i].unflatten(-1, {heads, -1}).transpose(1, 2);
  }
  return found;
}

// Where attention is wanted, in a form that broadcasts; mask says where it is not. kind as in
// torch.nn.TransformerEncoderLayer: 0 for [length, length], 1 for padding, [batch, length], 2 for
// [batch, heads, length, length].
at::Tensor attended(const at::Tensor& mask, std::optional<int64_t> kind) {
  const at::Tensor wanted = mask.to(at::kBool).logical_not();
  return kind == 1 ? wanted.unsqueeze(1).unsqueeze(1) : wanted;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_weight_norm_interface)(const at::Tensor& v,
                                                                          const at::Tensor& g,
                                                                          int64_t dim) {
  const at::Tensor norms = at::norm_except_dim(v, 2, dim);
  return {v * (g / norms), norms};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_weight_norm_interface_backward)(
    const at::Tensor& grad_w, const at::Tensor& saved_v, const at::Tensor& saved_g,
    const at::Tensor& saved_norms, int64_t dim) {
  return at::_weight_norm_differentiable_backward(grad_w.contiguous(), saved_v.contiguous(),
                                                  saved_g.contiguous(), saved_norms, dim);
}

// Query, divided by the root of a head's size, key and value as [batch, heads, length, size].
std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(_transform_bias_rescale_qkv)(
    const at::Tensor& qkv, const at::Tensor& qkv_bias, int64_t num_heads) {
  const at::Tensor rows = padded(qkv) + qkv_bias;
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) % (3 * num_heads) == 0,
              "_transform_bias_rescale_qkv: expected [batch, length, 3 x heads x size], got ",
              rows.sizes(), " for ", num_heads, " heads");
  const int64_t size = rows.size(2) / (3 * num_heads);
  const auto parts = rows.view({rows.size(0), rows.size(1), 3, num_heads, size}).unbind(2);
  return {(parts[0] / std::sqrt(static_cast<double>(size))).transpose(1, 2).contiguous(),
          parts[1].transpose(1, 2).contiguous(), parts[2].transpose(1, 2).contiguous()};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_native_multi_head_attention)(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t embed_dim,
    int64_t num_head, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
    const at::Tensor& proj_weight, const at::Tensor& proj_bias, const Optional& mask,
    bool need_weights, bool average_attn_weights, std::optional<int64_t> mask_type) {
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim,
              " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(num_head > 0 && embed_dim % num_head == 0,
              "`embed_dim` must divide evenly by `num_heads`");
  const bool masked = mask.has_value() && mask->defined();
  TORCH_CHECK(!masked || !(query.is_nested() || key.is_nested()),
              "NestedTensor with mask is not supported yet");
  const auto [q, k, v] = projected(query, key, value, qkv_weight, qkv_bias, num_head);
  Optional wanted;
  if (masked) wanted = attended(*mask, mask_type);
  if (key.is_nested()) wanted = has_row(key, k.size(2)).unsqueeze(1).unsqueeze(1);
  at::Tensor weights, mixed;
  if (need_weights) {
    at::Tensor scores = at::matmul(q / std::sqrt(static_cast<double>(q.size(3))), k.mT());
    if (wanted.has_value()) {
      scores = scores.masked_fill(wanted->logical_not(), -std::numeric_limits<double>::infinity());
    }
    weights = scores.softmax(-1);
    mixed = at::matmul(weights, v);
    if (query.is_nested()) weights = weights * has_row(query, q.size(2)).unsqueeze(1).unsqueeze(3);
    if (average_attn_weights) weights = weights.mean(1);
  } else {
    mixed = at::scaled_dot_product_attention(q, k, v, wanted);
  }
  at::Tensor rows = mixed.transpose(1, 2).flatten(2);
  if (query.is_nested()) rows = at::_nested_from_padded(rows, query._nested_tensor_size());
  return {at::linear(rows, proj_weight, proj_bias), weights};
}

}  // namespace graft::binding
