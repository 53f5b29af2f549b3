// src/torch/ops/sorting.cpp: sort, topk, and the operators that pick one element of each line.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <limits>

#include "kernels/sort/sort.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/ops/counting.h"
#include "torch/version/ops/reduction.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

// The CPU refuses bool where it could be ordered; its words come with the fallback.
void refuse_bool(const at::Tensor& self) {
  if (self.scalar_type() == at::kBool) throw_unfilled();
}

void pick_into(Pick which, const at::Tensor& values, const at::Tensor& indices,
               const at::Tensor& self, int64_t dim, int64_t n = 0) {
  if (values.numel() == 0) return;
  pick(stream_of(self), which, view_of(values), view_of(indices), view_of(self),
       static_cast<int>(dim), n);
}

using Found = std::tuple<at::Tensor&, at::Tensor&>;

Found median_into(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values,
                  at::Tensor& indices, Pick which) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  native::zero_numel_check_dims(self, dim, "median()");
  at::checkDeviceType("median", {values, indices}, self.device().type());
  at::checkScalarType("median", {indices, "indices", 1}, at::kLong);
  at::checkSameType("median", {values, "values", 0}, {self, "self", 2});
  refuse_bool(self);
  at::assert_no_overlap(self, values);  // before they get their sizes, which would be self's
  at::assert_no_overlap(self, indices);
  at::DimVector sizes(self.sizes());
  if (self.dim() > 0) {
    sizes[dim] = 1;
    if (!keepdim) sizes.erase(sizes.begin() + dim);
  }
  native::resize_output(values, sizes);
  native::resize_output(indices, sizes);
  require_separate(values);
  require_separate(indices);
  const bool kept = keepdim || self.dim() == 0;
  pick_into(which, kept ? values : values.unsqueeze(dim), kept ? indices : indices.unsqueeze(dim),
            self, dim);
  return {values, indices};
}

at::Tensor median_of_all(const at::Tensor& self, Pick which) {
  if (self.numel() == 0)
    return at::full({}, std::numeric_limits<float>::quiet_NaN(), at::kFloat).to(self.options());
  refuse_bool(self);
  const at::Tensor value = at::empty({}, self.options());
  const at::Tensor index = at::empty({}, self.options().dtype(at::kLong));
  pick_into(which, value.unsqueeze(0), index.unsqueeze(0), self.reshape({-1}), 0);
  return value;
}

void sort_stub(const at::TensorBase& self, const at::TensorBase& values,
               const at::TensorBase& indices, int64_t dim, bool descending, bool) {
  if (self.numel() == 0) return;
  sort(current_stream(self.device().index()), view_of(values), view_of(indices), view_of(self),
       static_cast<int>(dim), descending);
}

}  // namespace

void GRAFT_STRUCTURED(topk_values)(const at::Tensor& self, int64_t k, int64_t given, bool largest,
                                   bool, const at::Tensor& values, const at::Tensor& indices) {
  const int64_t dim = at::maybe_wrap_dim(given, self.dim(), true);
  TORCH_CHECK(k >= 0 && k <= (self.dim() > 0 ? self.size(dim) : 1),
              "selected index k out of range");
  require_separate(values);
  require_separate(indices);
  if (values.numel() == 0) return;
  const bool shared = values.is_alias_of(self) || indices.is_alias_of(self);
  const at::Tensor input = shared ? self.clone() : self;
  top_k(stream_of(self), view_of(values), view_of(indices), view_of(input), static_cast<int>(dim),
        largest);
}

Found GRAFT_OPERATOR(kthvalue_values)(const at::Tensor& self, int64_t k, int64_t given,
                                      bool keepdim, at::Tensor& values, at::Tensor& indices) {
  const int64_t dim = at::maybe_wrap_dim(given, self.dim(), true);
  native::zero_numel_check_dims(self, dim, "kthvalue()");
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ",
              dim);
  at::assert_no_overlap(self, values);
  if (self.dim() > 0) refuse_bool(self);
  native::_reduction_with_indices_allocate_or_resize_output(values, indices, self, dim, keepdim);
  require_separate(values);
  require_separate(indices);
  pick_into(Pick::kNth, values, indices, self, dim, k - 1);
  if (!keepdim && self.dim() > 0) {
    values.squeeze_(dim);
    indices.squeeze_(dim);
  }
  return {values, indices};
}

Found GRAFT_OPERATOR(median_dim_values)(const at::Tensor& self, int64_t dim, bool keepdim,
                                        at::Tensor& values, at::Tensor& indices) {
  return median_into(self, dim, keepdim, values, indices, Pick::kMedian);
}

Found GRAFT_OPERATOR(nanmedian_dim_values)(const at::Tensor& self, int64_t dim, bool keepdim,
                                           at::Tensor& values, at::Tensor& indices) {
  return median_into(self, dim, keepdim, values, indices, Pick::kNanMedian);
}

at::Tensor GRAFT_OPERATOR(median)(const at::Tensor& self) {
  return median_of_all(self, Pick::kMedian);
}

at::Tensor GRAFT_OPERATOR(nanmedian)(const at::Tensor& self) {
  return median_of_all(self, Pick::kNanMedian);
}

Found GRAFT_OPERATOR(mode_values)(const at::Tensor& self, int64_t given, bool keepdim,
                                  at::Tensor& values, at::Tensor& indices) {
  TORCH_CHECK(self.layout() == at::kStrided,
              "mode only supports strided layout, got: ", self.layout());
  TORCH_CHECK(self.device() == values.device(), "expected device '", self.device(), "' but got '",
              values.device(), "' for values output");
  TORCH_CHECK(self.device() == indices.device(), "expected device '", self.device(), "' but got '",
              indices.device(), "' for indices output");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(), "expected scalar type '",
              self.scalar_type(), "' but got '", values.scalar_type(), "' for values output");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "expected scalar type '", at::kLong,
              "' but got '", indices.scalar_type(), "' for indices output");
  const int64_t dim = at::maybe_wrap_dim(given, self.dim());
  if (self.numel() == 0) {
    const auto sizes = native::get_zero_numel_tensor_size(self, dim, keepdim, "mode()");
    native::resize_output(values, sizes);
    native::resize_output(indices, sizes);
    return {values, indices};
  }
  native::_reduction_with_indices_allocate_or_resize_output(values, indices, self, dim, keepdim);
  require_separate(values, {&self});
  require_separate(indices, {&self});
  pick_into(Pick::kMode, values, indices, self, dim);
  if (!keepdim && self.dim() > 0) {
    values.squeeze_(dim);
    indices.squeeze_(dim);
  }
  return {values, indices};
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(mode)(const at::Tensor& self, int64_t dim,
                                                        bool keepdim) {
  at::Tensor values = at::empty({0}, self.options());
  at::Tensor indices = at::empty({0}, self.options().dtype(at::kLong));
  GRAFT_OPERATOR(mode_values)(self, dim, keepdim, values, indices);
  return {values, indices};
}

void fill_sorting_stubs() { native::sort_stub.set_privateuse1_dispatch_ptr(&binding::sort_stub); }

}  // namespace graft::binding
