// src/torch/ops/embedding_bag.cpp: embedding bags, their gradients, and rows held to a norm.
#include "kernels/index/embedding_bag.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The bound as a number of the dtype; norms above its largest number are infinite.
double within(at::ScalarType type, double bound) {
  if (!at::isFloatingType(type) || !std::isfinite(bound)) return bound;
  return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "bound", [&] {
    const double largest = std::numeric_limits<scalar_t>::max();
    return std::clamp(bound, -largest, largest);
  });
}

constexpr int64_t kMean = 1, kMax = 2;

void check_arguments(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                     int64_t mode, const at::Tensor& weights, bool include_last_offset) {
  for (const at::Tensor* tensor : {&indices, &offsets}) {
    require(tensor->scalar_type() == at::kLong || tensor->scalar_type() == at::kInt);
  }
  require_floating(weight);
  require(indices.dim() == 1);
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ",
              weight.dim());
  TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ",
              offsets.dim());
  TORCH_CHECK(!include_last_offset || offsets.size(0) >= 1,
              "include_last_offset: number of offset should be at least 1");
  if (!weights.defined()) return;
  TORCH_CHECK(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
  require_same_dtype(weights, weight);
  TORCH_CHECK(weights.dim() == 1 && weights.numel() == indices.numel(),
              "per_sample_weights must have as many elements as indices");
}

Four bags_of(const at::Tensor& weight, const at::Tensor& given_indices,
             const at::Tensor& given_offsets, int64_t mode, const at::Tensor& given_weights,
             bool include_last_offset, int64_t padding) {
  check_arguments(weight, given_indices, given_offsets, mode, given_weights, include_last_offset);
  const bool wide =
      given_indices.scalar_type() == at::kLong || given_offsets.scalar_type() == at::kLong;
  const auto type = wide ? at::kLong : at::kInt;
  const at::Tensor indices = given_indices.to(type).contiguous();
  const at::Tensor offsets = given_offsets.to(type).contiguous();
  const at::Tensor weights = contiguous(given_weights);
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0), n = weight.size(1);
  const at::Tensor output = at::empty({bags, n}, weight.options());
  const at::Tensor bag = at::zeros({indices.numel()}, indices.options());
  const at::Tensor sizes = at::empty({bags}, indices.options());
  const at::Tensor rows =
      at::empty(mode == kMax ? at::DimVector{bags, n} : at::DimVector{bags}, indices.options());
  if (mode != kMax) rows.zero_();
  const OptionalView scale(weights), rows_view(mode == kMax ? rows : at::Tensor());
  embedding_bag(stream_of(weight), {view_of(output), view_of(bag), view_of(sizes), rows_view.get()},
                view_of(weight), view_of(indices), view_of(offsets), scale.get(),
                static_cast<BagMode>(mode), padding < 0 ? kNoPadding : padding);
  return {output, bag, sizes, rows};
}

// The bag of each index, which the CPU's forward leaves out for sums.
at::Tensor bag_of_each(const at::Tensor& indices, const at::Tensor& offsets,
                       const at::Tensor& offset2bag) {
  if (offset2bag.numel() == indices.numel()) return offset2bag;
  const at::Tensor places = at::arange(indices.numel(), offsets.options());
  return at::searchsorted(offsets, places, /*out_int32=*/false, /*right=*/true).sub_(1);
}

}  // namespace

Four GRAFT_OPERATOR(_embedding_bag)(const at::Tensor& weight, const at::Tensor& indices,
                                    const at::Tensor& offsets, bool, int64_t mode, bool,
                                    const std::optional<at::Tensor>& per_sample_weights,
                                    bool include_last_offset, int64_t padding_idx) {
  return bags_of(weight, indices, offsets, mode, or_undefined(per_sample_weights),
                 include_last_offset, padding_idx);
}
Four GRAFT_OPERATOR(_embedding_bag_forward_only)(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, bool,
    int64_t mode, bool, const std::optional<at::Tensor>& per_sample_weights,
    bool include_last_offset, int64_t padding_idx) {
  return bags_of(weight, indices, offsets, mode, or_undefined(per_sample_weights),
                 include_last_offset, padding_idx);
}

at::Tensor GRAFT_OPERATOR(_embedding_bag_dense_backward)(
    const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag,
    const at::Tensor& bag_size, const at::Tensor& maximum_indices, int64_t num_weights,
    bool scale_grad_by_freq, int64_t mode, const std::optional<at::Tensor>& per_sample_weights,
    int64_t padding_idx) {
  const at::Tensor gradient = grad.contiguous();
  if (mode == kMax) {
    // The CPU's forward gives row 0 for an empty bag, the kernel's -1.
    const at::Tensor rows = maximum_indices.to(at::kLong);
    const at::Tensor empty = (rows < 0).logical_or_(bag_size.eq(0).unsqueeze(1));
    const at::Tensor result = at::zeros({num_weights, grad.size(1)}, grad.options());
    return result.scatter_add_(0, rows.clamp_min(0), gradient.masked_fill(empty, 0));
  }
  const at::Tensor bags = offset2bag.to(at::kLong);
  at::Tensor scaled = gradient;
  if (mode == kMean) scaled = gradient / bag_size.clamp_min(1).to(grad.scalar_type()).unsqueeze(1);
  at::Tensor rows = scaled.index_select(0, bags);
  const at::Tensor weights = or_undefined(per_sample_weights);
  if (weights.defined()) rows = rows * weights.unsqueeze(1);
  return at::embedding_dense_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq);
}

at::Tensor GRAFT_OPERATOR(_embedding_bag_per_sample_weights_backward)(
    const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
    const at::Tensor& offsets, const at::Tensor& offset2bag, int64_t mode, int64_t padding_idx) {
  TORCH_CHECK(mode == 0,
              "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  if (indices.numel() == 0) return at::zeros({0}, grad.options());
  // Half types are multiplied and summed in float32.
  const at::ScalarType wide = at::toOpMathType(grad.scalar_type());
  const at::Tensor rows = weight.index_select(0, indices).to(wide);
  const at::Tensor bags = bag_of_each(indices, offsets, offset2bag).to(at::kLong);
  const at::Tensor products = grad.index_select(0, bags).to(wide) * rows;
  return products.sum(1).masked_fill_(indices == padding_idx, 0).to(grad.scalar_type());
}

at::Tensor& GRAFT_OPERATOR(embedding_renorm_)(at::Tensor& self, const at::Tensor& indices,
                                              double max_norm, double norm_type) {
  TORCH_CHECK(self.dim() == 2, "self must be a 2-D tensor, but got ", self.dim(), "-D");
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "indices must be Long or Int, but got ", indices.scalar_type());
  if (indices.numel() == 0) return self;
  max_norm = within(c10::toRealValueType(self.scalar_type()), max_norm);
  // An index that comes twice writes the same row twice.
  const at::Tensor given = indices.reshape({-1}).to(at::kLong);
  const at::Tensor at = at::where(given < 0, given + self.size(0), given);
  const at::Tensor rows = self.index_select(0, at);
  const at::Tensor norms = rows.norm(norm_type, 1, true);
  const at::Tensor shrunk = rows * (max_norm / (norms + 1e-7));
  return self.index_copy_(0, at, at::where(norms > max_norm, shrunk, rows));
}

}  // namespace graft::binding
