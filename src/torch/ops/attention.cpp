// src/torch/ops/attention.cpp: scaled dot product attention and its gradients.
#include "kernels/attention/attention.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "kernels/attention/mask.h"
#include "kernels/attention/tiled_attention.h"
#include "operators.h"
#include "torch/device/fallback_count.h"
#include "torch/device/generator.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/ops/composed_attention.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/opmath.h"
#include "torch/version/ops/attention.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The operands of one call, kept alive and seen as the kernels take them.
struct Operands {
  Operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
           const Optional& bias, double dropout, bool causal, std::optional<double> scale)
      : query(query), key(key), value(value) {
    see();
    call.scale = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
    call.causal = causal;
    call.dropout = dropout;
    if (!bias.has_value() || !bias->defined()) return;
    spread = bias->expand({query.size(0), query.size(1), query.size(2), key.size(2)});
    bias_view = view_of(spread);
    call.bias = &bias_view;
  }
  Operands(const Operands&) = delete;

  // For the gradients, whose kernels take half types on some devices only; PyTorch's own
  // composition widens them, too.
  void widen() {
    if (tiles_attention(stream_of(query).device(), call)) return;
    query = widened(query), key = widened(key), value = widened(value);
    see();
  }

  // For the gradients: what the forward call gave.
  void keep(const at::Tensor& output, const at::Tensor& logsumexp) {
    if (!output.defined() || output.scalar_type() != query.scalar_type()) return;
    if (!logsumexp.defined() || logsumexp.scalar_type() != sums_type()) return;
    output_view = view_of(output), sums = logsumexp.contiguous();
    sums_view = view_of(sums);
    call.output = &output_view, call.logsumexp = &sums_view;
  }

  at::ScalarType sums_type() const {
    return query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  }

  at::Tensor query, key, value, spread;
  TensorView bias_view, output_view, sums_view;
  Attention call;

 private:
  void see() {
    call.query = view_of(query);
    call.key = view_of(key);
    call.value = view_of(value);
  }

  at::Tensor sums;
};

bool same_types(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::ScalarType type = query.scalar_type();
  const bool known =
      type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
  return known && key.scalar_type() == type && value.scalar_type() == type;
}

// Whether vmap holds the tensor, maybe below grad: the fused operators have no batching rules.
bool batched(at::Tensor tensor) {
  while (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
    tensor = wrapper->value();
  }
  return at::functorch::isBatchedTensor(tensor);
}

// Calls that the kernels do not take go the way of PyTorch's own composition: other ranks, odd
// shapes (which it reports), and masks that want a gradient.
int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const Optional& mask, double, bool, std::optional<double>, bool grouped) {
  constexpr auto kMath = static_cast<int64_t>(at::SDPBackend::math);
  if (!at::globalContext().userEnabledOverrideableSDP()) return kMath;
  for (const at::Tensor* tensor : {&query, &key, &value}) {
    if (tensor->dim() != 4 || tensor->is_nested() || tensor->sym_numel() == 0) return kMath;
    if (tensor->is_neg() || tensor->is_conj() || batched(*tensor)) return kMath;
  }
  if (!same_types(query, key, value)) return kMath;
  // Symbolic where torch.compile traces.
  const c10::SymInt heads = query.sym_size(1), key_heads = key.sym_size(1);
  const bool fits = key.sym_size(0) == query.sym_size(0) &&
                    value.sym_size(0) == query.sym_size(0) && value.sym_size(1) == key_heads &&
                    key.sym_size(2) == value.sym_size(2) && key.sym_size(3) == query.sym_size(3) &&
                    (grouped ? heads % key_heads == 0 : heads == key_heads);
  if (!fits) return kMath;
  if (mask.has_value() && mask->defined() && (mask->requires_grad() || mask->dim() > 4)) {
    return kMath;
  }
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

// The result's memory, laid out as the operator's meta function in PyTorch promises: as the query,
// or, for other sizes, dense in the query's order of dimensions.
at::Tensor empty_output(const at::Tensor& query, int64_t width, const at::TensorOptions& options) {
  if (query.size(3) == width) return at::empty_like(query, options);
  std::array<int64_t, 4> order = {0, 1, 2, 3}, strides;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
  const std::array<int64_t, 4> sizes = {query.size(0), query.size(1), query.size(2), width};
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return at::empty_strided(sizes, strides, options);
}

// A number of the generator as the tensor that autograd carries to the backward.
at::Tensor saved(uint64_t number) {
  at::Tensor tensor = at::empty({}, at::kLong);
  *tensor.mutable_data_ptr<int64_t>() = static_cast<int64_t>(number);
  return tensor;
}

// The weights that the forward kernel kept, drawn again by the host: a fallback, counted as one.
at::Tensor kept_weights(const Attention& call, at::Device device) {
  const auto begun = std::chrono::steady_clock::now();
  const TensorView &query = call.query, &key = call.key;
  const at::Tensor kept =
      at::empty({query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]}, at::kBool);
  attention_mask(call, kept.mutable_data_ptr<bool>());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  count_fallback("aten::native_dropout", kept.nbytes(), took.count());
  return kept.to(device);
}

// The call where its kernels are missing.
ComposedAttention composed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Optional& bias, const Attention& call) {
  return {query,      key,         value,        or_undefined(bias),
          call.scale, call.causal, call.dropout, at::Tensor()};
}

// The CPU's attention by its own name stands in exported programs. Its dropout draws as the CPU
// does, so such calls are the fallback's, as are those that the CPU refuses.
void require_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const Optional& mask, double dropout, bool causal,
                    std::optional<double> scale) {
  const bool numbers =
      !mask.has_value() || !mask->defined() || mask->scalar_type() == query.scalar_type();
  if (!numbers || dropout != 0 ||
      choose(query, key, value, mask, dropout, causal, scale, false) !=
          static_cast<int64_t>(at::SDPBackend::overrideable)) {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for this call of the CPU's attention");
  }
}

uint64_t restored(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.item<int64_t>());
}

}  // namespace

void fill_attention_stubs() {
  native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose);
}

int64_t GRAFT_OPERATOR(_fused_sdp_choice)(const at::Tensor& query, const at::Tensor& key,
                                          const at::Tensor& value, const Optional& attn_mask,
                                          double dropout_p, bool is_causal,
                                          std::optional<double> scale, bool enable_gqa) {
  return choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
           at::Tensor, at::Tensor>
GRAFT_OPERATOR(_scaled_dot_product_fused_attention_overrideable)(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const Optional& attn_bias, double dropout_p, bool is_causal, bool,
    std::optional<double> scale) {
  Operands operands(query, key, value, attn_bias, dropout_p, is_causal, scale);
  const int64_t batch = query.size(0), heads = query.size(1), rows = query.size(2);
  const at::Tensor output = empty_output(query, value.size(3), query.options());
  const at::Tensor logsumexp =
      at::empty({batch, heads, rows}, query.options().dtype(operands.sums_type()));
  if (dropout_p > 0) {
    const auto [seed, offset] =
        next_philox(std::nullopt, query.device(), attention_increment(operands.call));
    operands.call.philox = {seed, offset};
  }
  at::Tensor seed = saved(operands.call.philox.seed);
  try {
    attention(stream_of(query), view_of(output), view_of(logsumexp), operands.call);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    explain_fallback(error);
    ComposedAttention call = composed(query, key, value, attn_bias, operands.call);
    const auto [result, sums] = call.forward();
    output.copy_(result);
    logsumexp.copy_(sums);
    if (dropout_p > 0) seed = call.kept;
  }
  return {output,
          logsumexp,
          at::Tensor(),
          at::Tensor(),
          c10::SymInt(rows),
          c10::SymInt(key.size(2)),
          seed,
          saved(operands.call.philox.offset),
          at::Tensor()};
}

Gradients GRAFT_OPERATOR(_scaled_dot_product_fused_attention_overrideable_backward)(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4>,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
    int64_t, int64_t, double dropout_p, bool is_causal, const at::Tensor& philox_seed,
    const at::Tensor& philox_offset, std::optional<double> scale) {
  Operands operands(query, key, value, attn_bias, dropout_p, is_causal, scale);
  const bool drawn = philox_seed.defined() && philox_seed.scalar_type() == at::kBool;
  const auto compose = [&](const at::Tensor& kept) -> Gradients {
    ComposedAttention call = composed(query, key, value, attn_bias, operands.call);
    call.kept = kept;
    const auto [to_query, to_key, to_value] = call.backward(grad_out);
    return {to_query, to_key, to_value, at::Tensor()};
  };
  if (drawn) return compose(philox_seed);
  if (dropout_p > 0) {
    const auto [seed, offset] =
        repeated_philox(restored(philox_seed), restored(philox_offset), query.device());
    operands.call.philox = {seed, offset};
  }
  operands.widen();
  operands.keep(out, logsumexp);
  const at::Tensor above = grad_out.to(operands.query.scalar_type());
  const at::Tensor grad_query = at::empty_like(operands.query),
                   grad_key = at::empty_like(operands.key),
                   grad_value = at::empty_like(operands.value);
  try {
    attention_backward(stream_of(query), view_of(grad_query), view_of(grad_key),
                       view_of(grad_value), view_of(above), operands.call);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    explain_fallback(error);
    return compose(dropout_p > 0 ? kept_weights(operands.call, query.device()) : at::Tensor());
  }
  return {grad_query.to(query.scalar_type()), grad_key.to(key.scalar_type()),
          grad_value.to(value.scalar_type()), at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_scaled_dot_product_flash_attention_for_cpu)(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout_p,
    bool is_causal, const Optional& attn_mask, std::optional<double> scale) {
  require_kernel(query, key, value, attn_mask, dropout_p, is_causal, scale);
  const auto results = GRAFT_OPERATOR(_scaled_dot_product_fused_attention_overrideable)(
      query, key, value, attn_mask, dropout_p, is_causal, false, scale);
  return {std::get<0>(results), std::get<1>(results)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> GRAFT_OPERATOR(
    _scaled_dot_product_flash_attention_for_cpu_backward)(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& out, const at::Tensor& logsumexp, double dropout_p,
    bool is_causal, const Optional& attn_mask, std::optional<double> scale) {
  require_kernel(query, key, value, attn_mask, dropout_p, is_causal, scale);
  const at::Tensor none;
  const auto [to_query, to_key, to_value, to_mask] =
      GRAFT_OPERATOR(_scaled_dot_product_fused_attention_overrideable_backward)(
          grad_out, query, key, value, or_undefined(attn_mask), {true, true, true, false}, out,
          logsumexp, none, none, 0, 0, dropout_p, is_causal, none, none, scale);
  return {to_query, to_key, to_value};
}

}  // namespace graft::binding
