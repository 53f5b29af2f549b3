// src/torch/ops/counting.cpp: counting by bin, membership, and what runs along a dimension.
#include "torch/version/ops/counting.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/reduce/histogram.h"
#include "kernels/scan/cumulative_extremum.h"
#include "kernels/sort/membership.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/ops/pointwise.h"
#include "torch/version/ops/reduction.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

at::Tensor new_partial(const at::Tensor& input, int64_t count, int64_t bins, at::ScalarType type) {
  return at::empty({histogram_parts(count, bins), bins}, input.options().dtype(type));
}

void divide_by_volume(at::Tensor& hist, const at::TensorList& edges) {
  hist.div_(hist.sum());
  const auto dimensions = static_cast<int64_t>(edges.size());
  for (int64_t d = 0; d < dimensions; ++d) {
    at::DimVector shape(dimensions, 1);
    const at::Tensor widths = edges[d].diff();
    shape[d] = widths.numel();
    hist.div_(widths.reshape(shape));
  }
}

void fill_histogram(const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density,
                    at::Tensor& hist, const at::TensorList& bin_edges, BinSearch search) {
  const int64_t dimensions = self.size(-1);
  const int64_t count = self.numel() / std::max<int64_t>(1, dimensions);
  const at::Tensor rows = self.reshape({count, dimensions}).contiguous();
  const at::Tensor weights =
      weight.has_value() && weight->defined() ? weight->reshape({-1}).contiguous() : at::Tensor();
  std::vector<at::Tensor> edges;
  std::vector<TensorView> views;
  for (const at::Tensor& edge : bin_edges) {
    edges.push_back(edge.contiguous());
    views.push_back(view_of(edges.back()));
  }
  const at::Tensor partial = new_partial(rows, count, hist.numel(), at::kDouble);
  count_in_bins(stream_of(rows), view_of(partial), view_of(rows), views,
                OptionalView(weights).get(), search);
  hist.copy_(partial.sum(0).view(hist.sizes()));
  if (density) divide_by_volume(hist, bin_edges);
}

void histogramdd_stub(const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density,
                      at::Tensor& hist, const at::TensorList& bin_edges) {
  fill_histogram(self, weight, density, hist, bin_edges, BinSearch::kEdges);
}

void histogramdd_linear_stub(const at::Tensor& self, const std::optional<at::Tensor>& weight,
                             bool density, at::Tensor& hist, const at::TensorList& bin_edges,
                             bool local_search) {
  fill_histogram(self, weight, density, hist, bin_edges,
                 local_search ? BinSearch::kEvenChecked : BinSearch::kEven);
}

void outer_edges_stub(const at::Tensor& input, const int64_t n, std::vector<double>& first,
                      std::vector<double>& last) {
  // The CPU refuses other dtypes here; its words come with the fallback.
  if (input.scalar_type() != at::kFloat && input.scalar_type() != at::kDouble) throw_unfilled();
  const auto [low, high] = at::aminmax(input.reshape({-1, n}), 0);
  const at::Tensor lows = low.cpu().to(at::kDouble), highs = high.cpu().to(at::kDouble);
  for (int64_t d = 0; d < n; ++d) {
    first[d] = lows.const_data_ptr<double>()[d];
    last[d] = highs.const_data_ptr<double>()[d];
  }
}

void isin_stub(const at::Tensor& elements, const at::Tensor& tests, bool invert,
               const at::Tensor& out) {
  const at::ScalarType type = at::result_type(elements, tests);
  const at::Tensor left = elements.to(type).contiguous(), right = tests.to(type).contiguous();
  const at::Tensor found = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  is_among(stream_of(elements), view_of(found), view_of(left), view_of(right), invert);
  if (!found.is_same(out)) out.copy_(found);
}

void logcumsumexp_stub(at::Tensor& result, const at::Tensor& self, int64_t dim) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  native::resize_output(result, self.sizes());
  require_in_place_or_separate(result, self);
  if (self.numel() == 0) return;
  running_log_sum_exp(stream_of(self), view_of(result), view_of(self), static_cast<int>(wrapped));
}

void run_extremum(Extremum extremum, const at::Tensor& self, const at::Tensor& values,
                  const at::Tensor& indices, int64_t dim) {
  // Reached by name alone: cummax and cummin give what fits.
  TORCH_CHECK(values.sizes() == self.sizes() && indices.sizes() == self.sizes(),
              "expected values and indices of the sizes ", self.sizes(), ", but got ",
              values.sizes(), " and ", indices.sizes());
  TORCH_CHECK(values.scalar_type() == self.scalar_type() && indices.scalar_type() == at::kLong,
              "expected values of ", self.scalar_type(), " and indices of ", at::kLong,
              ", but got ", values.scalar_type(), " and ", indices.scalar_type());
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (self.numel() == 0) return;
  running_extremum(stream_of(self), extremum, view_of(values), view_of(indices), view_of(self),
                   static_cast<int>(dim));
}

// The greatest element; throws where bincount cannot count.
int64_t greatest_of(const at::Tensor& self) {
  const auto [low, high] = at::aminmax(self.reshape({-1}), 0);
  TORCH_CHECK(self.dim() == 1 && low.item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  const auto greatest = high.item<int64_t>();
  TORCH_CHECK(greatest < std::numeric_limits<int64_t>::max(),
              "maximum value of input overflowed, it should be < ",
              std::numeric_limits<int64_t>::max(), " but got ", greatest);
  return greatest;
}

bool counts_as_integer(const at::Tensor& self) {
  return self.scalar_type() != at::kBool && at::isIntegralType(self.scalar_type(), false);
}

// As torch.cuda, which takes integers where the CPU does not: the bounds are integers, too.
at::Tensor integer_histogram(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                             const at::Scalar& max) {
  TORCH_CHECK(bins > 0, "bins must be > 0");
  TORCH_CHECK(min.toDouble() <= max.toDouble(), "torch.histc: max must be larger than min");
  require_fit(min, self.scalar_type());
  require_fit(max, self.scalar_type());
  auto low = min.to<int64_t>(), high = max.to<int64_t>();
  if (low == high && self.numel() > 0) {
    const auto [least, greatest] = at::aminmax(self.reshape({-1}), 0);
    low = least.item<int64_t>();
    high = greatest.item<int64_t>();
  }
  if (low == high) {
    --low;
    ++high;
  }
  const at::Tensor elements = self.contiguous();
  const at::Tensor partial = new_partial(self, self.numel(), bins, at::kLong);
  count_integers_in_range(stream_of(self), view_of(partial), view_of(elements), low, high);
  return partial.sum(0).to(self.scalar_type());
}

}  // namespace

at::Tensor GRAFT_OPERATOR(histc)(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                                 const at::Scalar& max) {
  if (counts_as_integer(self)) return integer_histogram(self, bins, min, max);
  return native::histogram_histc(self, bins, min, max);
}

at::Tensor& GRAFT_OPERATOR(histc_out)(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                                      const at::Scalar& max, at::Tensor& out) {
  if (!counts_as_integer(self)) return native::histogram_histc_out(self, bins, min, max, out);
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "torch.histogram: input tensor and hist "
              "tensor should have the same dtype, but got input ",
              self.scalar_type(), " and hist ", out.scalar_type());
  const at::Tensor counts = integer_histogram(self, bins, min, max);
  native::resize_output(out, counts.sizes());
  return out.copy_(counts);
}

at::Tensor GRAFT_OPERATOR(bincount)(const at::Tensor& self, const std::optional<at::Tensor>& given,
                                    int64_t minlength) {
  const at::Tensor weights = or_undefined(given);
  if (!at::isIntegralType(self.scalar_type(), false)) throw_unfilled();  // the CPU's words
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  const auto counts = self.options().dtype(at::kLong);
  if (self.dim() == 1 && self.numel() == 0) return at::zeros({minlength}, counts);
  const int64_t greatest = greatest_of(self);
  TORCH_CHECK(!weights.defined() || (weights.dim() == 1 && weights.size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  const int64_t bins = std::max(greatest + 1, minlength);
  at::ScalarType type = at::kLong;
  if (weights.defined()) type = weights.scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  const at::Tensor elements = self.contiguous();
  const at::Tensor scaled = weights.defined() ? weights.to(type).contiguous() : weights;
  const at::Tensor partial = new_partial(self, self.numel(), bins, type);
  count_integers(stream_of(self), view_of(partial), view_of(elements), OptionalView(scaled).get());
  return partial.size(0) == 1 ? partial[0] : partial.sum(0);
}

void GRAFT_OPERATOR(_cummax_helper)(const at::Tensor& self, at::Tensor& values, at::Tensor& indices,
                                    int64_t dim) {
  run_extremum(Extremum::kMax, self, values, indices, dim);
}

void GRAFT_OPERATOR(_cummin_helper)(const at::Tensor& self, at::Tensor& values, at::Tensor& indices,
                                    int64_t dim) {
  run_extremum(Extremum::kMin, self, values, indices, dim);
}

void fill_counting_stubs() {
  using namespace native;
  native::histogramdd_stub.set_privateuse1_dispatch_ptr(&binding::histogramdd_stub);
  native::histogramdd_linear_stub.set_privateuse1_dispatch_ptr(&binding::histogramdd_linear_stub);
  histogram_select_outer_bin_edges_stub.set_privateuse1_dispatch_ptr(&outer_edges_stub);
  isin_default_stub.set_privateuse1_dispatch_ptr(&isin_stub);
  native::logcumsumexp_stub.set_privateuse1_dispatch_ptr(&binding::logcumsumexp_stub);
}

}  // namespace graft::binding
