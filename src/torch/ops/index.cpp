// src/torch/ops/index.cpp: operators that read or write elements at positions.
#include "kernels/index/index.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/IListRef.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index.h>
#include <ATen/ops/where.h>

#include <vector>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/ops/index.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

bool starts_with_mask(const Indices& indices) {
  for (const std::optional<at::Tensor>& index : indices) {
    if (index.has_value() && index->defined()) return index->scalar_type() == at::kBool;
  }
  return false;
}

// Where one mask alone chooses: that mask, made to broadcast with self. Undefined otherwise.
at::Tensor only_mask(const at::Tensor& self, const Indices& indices) {
  if (!starts_with_mask(indices)) return {};
  const at::Tensor number = at::empty({}, at::TensorOptions().dtype(at::kBool));
  auto [alone, mask] = native::canDispatchToMaskedFill(self, indices, number);
  return alone ? mask : at::Tensor();
}

}  // namespace

// One number for all that a mask chooses needs no positions, and so no wait for their count.
at::Tensor& GRAFT_OPERATOR(_index_put_impl_)(at::Tensor& self, const Indices& indices,
                                             const at::Tensor& values, bool accumulate,
                                             bool unsafe) {
  TORCH_CHECK_INDEX(indices.size() <= static_cast<size_t>(self.dim()),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  const bool one = !accumulate && values.numel() == 1 && values.device() == self.device() &&
                   values.scalar_type() == self.scalar_type() &&
                   at::has_internal_overlap(self) != at::MemOverlap::Yes;
  const at::Tensor mask = one ? only_mask(self, indices) : at::Tensor();
  if (mask.defined()) return at::where_outf(mask, values.reshape({}), self, self);
  return native::_index_put_impl_(self, indices, values, accumulate, unsafe);
}

void GRAFT_STRUCTURED(cat_out)(const at::ITensorListRef& tensors, int64_t dim, int64_t, bool, bool,
                               bool, at::MemoryFormat, const at::Tensor& out) {
  if (out.numel() == 0) return;
  std::vector<TensorView> inputs;
  inputs.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() > 0) inputs.push_back(view_of(tensor));
  }
  cat(stream_of(out), view_of(out), inputs, static_cast<int>(dim));
}

at::Tensor& GRAFT_OPERATOR(index_select_out)(const at::Tensor& self, int64_t dim,
                                             const at::Tensor& index, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  TORCH_CHECK(dim == 0 || dim < self.dim(), "index_select(): Indexing dim ", dim,
              " is out of bounds of tensor");
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  if (self.dim() > 0) sizes[dim] = index.numel();
  require_separate(out, {&self, &index});
  native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  TORCH_CHECK_INDEX(self.dim() != 1 || self.numel() > 0, "index out of range in self");
  TORCH_CHECK(self.numel() > 0, "index_select(): self indexing axis dim should be positive");
  index_select(stream_of(self), view_of(at_least_1d(out)), view_of(at_least_1d(self)),
               static_cast<int>(dim), view_of(at_least_1d(index)));
  return out;
}

at::Tensor GRAFT_OPERATOR(index_select)(const at::Tensor& self, int64_t dim,
                                        const at::Tensor& index) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(index_select_out)(self, dim, index, out);
}

void GRAFT_STRUCTURED(index_add_out)(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                     const at::Tensor& source, const at::Scalar& alpha,
                                     const at::Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
  if (source.numel() == 0) return;
  TORCH_CHECK_INDEX(out.numel() != 0 || out.dim() > 1, "index out of range in self");
  if (out.numel() == 0) return;
  require_fit(alpha, source.scalar_type());
  const at::Tensor added = alpha.equal(1) ? source : source.mul(alpha).to(source.scalar_type());
  const at::Tensor to = at_least_1d(out), from = at_least_1d(added);
  at::DimVector shape(from.dim(), 1);
  shape[dim] = index.numel();
  const at::Tensor positions = index.reshape(shape).expand(from.sizes());
  scatter(stream_of(out), view_of(to), static_cast<int>(dim), view_of(positions), view_of(from),
          ScatterMode::kAdd);
}

at::Tensor& GRAFT_OPERATOR(masked_select_out)(const at::Tensor& self, const at::Tensor& mask,
                                              at::Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  require_separate(out, {&self, &mask});
  const auto [values, places] = at::expand_outplace(self, mask);
  return at::index_out(out, at_least_1d(*values), {at_least_1d(*places)});
}

at::Tensor GRAFT_OPERATOR(masked_select)(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(masked_select_out)(self, mask, out);
}

}  // namespace graft::binding
