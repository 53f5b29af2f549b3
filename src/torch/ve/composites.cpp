// src/torch/ve/composites.cpp: what PyTorch composes otherwise for the devices of its own lists.
#include "torch/version/composites.h"

#include <ATen/SDPBackend.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <limits>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/ve/attach.h"
#include "torch/ve/call.h"
#include "torch/ve/composed.h"
#include "torch/ve/slot.h"

namespace graft::binding::ve {
namespace {

using Optional = std::optional<at::Tensor>;

// One kernel, and with one seed the numbers of the device type that carries the slot.
at::Tensor dropout(const at::Tensor& input, double p, bool train) {
  if (input.device().type() != kType || !train || p <= 0 || p >= 1 || input.sym_numel() == 0) {
    return native::dropout(input, p, train);
  }
  return std::get<0>(at::native_dropout(input, p, train));
}

// A mask of bool as what is added to the scores.
Optional added(const Optional& mask, at::ScalarType type) {
  if (!mask.has_value() || mask->scalar_type() != at::kBool) return mask;
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  return at::where(*mask, at::scalar_tensor(0.0, type), at::scalar_tensor(kHidden, type));
}

bool on_the_slot(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                 const Optional& mask) {
  const bool alone = !mask.has_value() || !mask->defined();
  return query.device().type() == kType && key.device() == query.device() &&
         value.device() == query.device() && (alone || mask->device() == query.device());
}

// The fused operator where the device has kernels for the call; PyTorch's composition else, which
// also says what is wrong with one.
at::Tensor scaled_dot_product_attention(const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value, const Optional& mask,
                                        double dropout_p, bool is_causal,
                                        std::optional<double> scale, bool enable_gqa) {
  constexpr auto kFused = static_cast<int64_t>(at::SDPBackend::overrideable);
  const at::ScalarType type = query.scalar_type();
  const bool masked = mask.has_value() && mask->defined();
  const bool fits =
      !masked || (!is_causal && (mask->scalar_type() == at::kBool || mask->scalar_type() == type));
  if (!fits || !on_the_slot(query, key, value, mask) ||
      GRAFT_OPERATOR(_fused_sdp_choice)(query, key, value, mask, dropout_p, is_causal, scale,
                                        enable_gqa) != kFused) {
    return native::scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal,
                                                scale, enable_gqa);
  }
  return std::get<0>(at::_scaled_dot_product_fused_attention_overrideable(
      query, key, value, added(mask, type), dropout_p, is_causal, /*return_debug_mask=*/false,
      scale));
}

// PyTorch looks for twins among the indices by a stub that no tensor of the slot reaches.
void validate_sparse(const at::Tensor& indices, const at::Tensor& values, at::IntArrayRef size,
                     std::optional<bool> is_coalesced, std::optional<bool> check_pinning) {
  Call call("aten::_validate_sparse_coo_tensor_args");
  native::_validate_sparse_coo_tensor_args(call.inner(indices, false), call.inner(values, false),
                                           size, is_coalesced, check_pinning);
}

}  // namespace

void attach_composites() {
  replace_composed("_validate_sparse_coo_tensor_args", &validate_sparse);
  replace_composed("dropout", &dropout);
  replace_composed("scaled_dot_product_attention", &scaled_dot_product_attention);
}

}  // namespace graft::binding::ve
