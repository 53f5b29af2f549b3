// src/torch/ops/search.cpp: searchsorted and bucketize.
#include "kernels/sort/search.h"

#include <ATen/ops/empty.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/search.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

at::Tensor new_output(const at::Tensor& like, bool out_int32) {
  return at::empty({0}, like.options().dtype(out_int32 ? at::kInt : at::kLong));
}

void check_boundaries(const at::Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(), ")");
}

}  // namespace

at::Tensor& GRAFT_OPERATOR(searchsorted_Tensor_out)(const at::Tensor& sequence,
                                                    const at::Tensor& self, bool out_int32,
                                                    bool right,
                                                    std::optional<c10::string_view> side,
                                                    const std::optional<at::Tensor>& sorter,
                                                    at::Tensor& out) {
  const at::Tensor order = or_undefined(sorter);
  native::searchsorted_pre_check(sequence, self, out, out_int32, right, side, order);
  native::resize_output(out, self.sizes());
  TORCH_CHECK(sequence.dim() > 0,
              "searchsorted: expected an out that is not the boundaries, which got the values' "
              "sizes: give another tensor");
  if (self.numel() == 0) return out;
  at::Tensor values, rows, places;
  native::searchsorted_maybe_trim_input_tensors(values, rows, places, self, sequence, order);
  if (!values.defined()) values = self;
  if (!rows.defined()) rows = sequence;
  if (!places.defined()) places = order;
  if (values.scalar_type() == at::kBool) throw_unfilled();  // the CPU refuses it, in its words
  const at::Tensor result = out.is_contiguous() ? out : out.contiguous();
  search_sorted(stream_of(self), view_of(result), view_of(rows), view_of(values),
                OptionalView(places).get(), side.has_value() ? *side == "right" : right);
  if (!result.is_same(out)) out.copy_(result);
  return out;
}

at::Tensor GRAFT_OPERATOR(searchsorted_Tensor)(const at::Tensor& sequence, const at::Tensor& self,
                                               bool out_int32, bool right,
                                               std::optional<c10::string_view> side,
                                               const std::optional<at::Tensor>& sorter) {
  at::Tensor out = new_output(sequence, out_int32);
  return GRAFT_OPERATOR(searchsorted_Tensor_out)(sequence, self, out_int32, right, side, sorter,
                                                 out);
}

at::Tensor& GRAFT_OPERATOR(searchsorted_Scalar_out)(const at::Tensor& sequence,
                                                    const at::Scalar& self, bool out_int32,
                                                    bool right,
                                                    std::optional<c10::string_view> side,
                                                    const std::optional<at::Tensor>& sorter,
                                                    at::Tensor& out) {
  const at::Tensor value = native::searchsorted_scalar_tensor(self, sequence.device());
  return GRAFT_OPERATOR(searchsorted_Tensor_out)(sequence, value, out_int32, right, side, sorter,
                                                 out);
}

at::Tensor GRAFT_OPERATOR(searchsorted_Scalar)(const at::Tensor& sequence, const at::Scalar& self,
                                               bool out_int32, bool right,
                                               std::optional<c10::string_view> side,
                                               const std::optional<at::Tensor>& sorter) {
  at::Tensor out = new_output(sequence, out_int32);
  return GRAFT_OPERATOR(searchsorted_Scalar_out)(sequence, self, out_int32, right, side, sorter,
                                                 out);
}

at::Tensor& GRAFT_OPERATOR(bucketize_Tensor_out)(const at::Tensor& self,
                                                 const at::Tensor& boundaries, bool out_int32,
                                                 bool right, at::Tensor& out) {
  check_boundaries(boundaries);
  return GRAFT_OPERATOR(searchsorted_Tensor_out)(boundaries, self, out_int32, right, std::nullopt,
                                                 std::nullopt, out);
}

at::Tensor GRAFT_OPERATOR(bucketize_Tensor)(const at::Tensor& self, const at::Tensor& boundaries,
                                            bool out_int32, bool right) {
  at::Tensor out = new_output(boundaries, out_int32);
  return GRAFT_OPERATOR(bucketize_Tensor_out)(self, boundaries, out_int32, right, out);
}

at::Tensor GRAFT_OPERATOR(bucketize_Scalar)(const at::Scalar& self, const at::Tensor& boundaries,
                                            bool out_int32, bool right) {
  const at::Tensor value = native::searchsorted_scalar_tensor(self, boundaries.device());
  return GRAFT_OPERATOR(bucketize_Tensor)(value, boundaries, out_int32, right);
}

}  // namespace graft::binding
