// src/torch/ops/index_reduce.cpp: operators that combine, mask or repeat elements by position.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "kernels/index/index.h"
#include "kernels/move/masked.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/search.h"

namespace graft::binding {
namespace {

ScatterMode mode_of(std::string_view reduce) {
  if (reduce == "prod") return ScatterMode::kMultiply;
  if (reduce == "amax") return ScatterMode::kMax;
  return reduce == "amin" ? ScatterMode::kMin : ScatterMode::kAdd;
}

// What a destination holds before the first element when self is left out.
at::Scalar neutral(std::string_view reduce, at::ScalarType type) {
  if (reduce == "prod") return 1;
  if (reduce == "mean") return 0;
  const bool largest = reduce == "amin";
  if (at::isFloatingType(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return largest ? infinity : -infinity;
  }
  if (type == at::kBool) return largest;
  if (type == at::kByte) return largest ? 255 : 0;
  const int bits = 8 * static_cast<int>(c10::elementSize(type)) - 1;
  const auto most = static_cast<int64_t>((uint64_t{1} << bits) - 1);
  return largest ? most : -most - 1;
}

template <class Index>
void repeat(const Index* repeats, const int64_t* ends, Index* result, int64_t size, int64_t total) {
  TensorView view{};
  view.rank = 1;
  view.strides[0] = 1;
  const auto vector = [&](const void* address, graft_dtype dtype, int64_t count) {
    view.address = reinterpret_cast<graft_address>(address);
    view.dtype = dtype;
    view.sizes[0] = count;
    return view;
  };
  repeat_positions(current_stream(current_device()), vector(result, dtype_of<Index>, total),
                   vector(repeats, dtype_of<Index>, size), vector(ends, GRAFT_INT64, size));
}

void check_triangle(int64_t row, int64_t col, const at::TensorOptions& options) {
  TORCH_CHECK(row >= 0, "row must be non-negative, got", row);
  TORCH_CHECK(col >= 0, "col must be non-negative, got", col);
  const auto type = c10::typeMetaToScalarType(options.dtype());
  require(type == at::kLong || type == at::kInt);
}

// The positions that hold true.
at::Tensor positions_of(const at::Tensor& inside, const at::TensorOptions& options) {
  return inside.nonzero().t().contiguous().to(options);
}

// Of a and b, the sum; beyond the numbers there are, the first or last one.
int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

bool same_lines(const at::Tensor& data, const at::Tensor& given) {
  const auto axis = given.dim() - 1;
  return data.sizes().slice(0, axis) == given.sizes().slice(0, axis);
}

bool within_lines(const at::Tensor& data, const at::Tensor& given, bool ends) {
  const int64_t size = data.size(given.dim() - 1);
  const at::Tensor host = given.cpu();
  const bool within = host.min().item<int64_t>() >= 0 && host.max().item<int64_t>() <= size;
  return within && (ends || host.sum(-1).max().item<int64_t>() <= size);
}

// The CPU, which combines segments, reads where offsets and lengths say; it looks at lengths alone,
// and only where they are not unsafe. Returns how many segments a line has.
int64_t check_segments(const at::Tensor& data, const std::optional<at::Tensor>& lengths,
                       const std::optional<at::Tensor>& offsets, bool unsafe) {
  const at::Tensor ends = or_undefined(offsets);
  const at::Tensor given = ends.defined() ? ends : or_undefined(lengths);
  require(given.defined() && given.dim() > 0 && given.dim() <= data.dim() && given.numel() > 0 &&
          at::isIntegralType(given.scalar_type(), false));
  const bool checked = !ends.defined() && !unsafe;
  TORCH_CHECK(same_lines(data, given) && (checked || within_lines(data, given, ends.defined())),
              "segment_reduce: expected ",
              ends.defined() ? "offsets between 0 and the data's size along the axis"
                             : "lengths that add up to at most the data's size along the axis",
              ", in a tensor with the data's sizes before the axis; got the sizes ", given.sizes(),
              " for data of ", data.sizes());
  return given.size(-1) - (ends.defined() ? 1 : 0);
}

// The CPU combines rows that start from themselves by operators, which take more dtypes than its
// loops over elements do.
void require_reducible(const at::Tensor& self, c10::string_view reduce, bool include_self) {
  const bool by_rows = self.dim() > 1 && include_self;
  if (self.scalar_type() == at::kBool) return require(by_rows && reduce != "mean");
  if (self.is_complex()) return require(by_rows && (reduce == "prod" || reduce == "mean"));
}

}  // namespace

void GRAFT_STRUCTURED(index_reduce_out)(const at::Tensor& self, int64_t dim,
                                        const at::Tensor& index, const at::Tensor& source,
                                        const c10::string_view reduce, bool include_self,
                                        const at::Tensor& out) {
  require_reducible(self, reduce, include_self);
  TORCH_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0 || index.numel() == 0,
                    "index_reduce(): index out of range for tensor of size ", self.sizes(),
                    " at dimension ", dim);
  if (!out.is_same(self)) out.copy_(self);
  if (out.numel() == 0 || source.numel() == 0) return;
  const at::Tensor to = at_least_1d(out), from = at_least_1d(source);
  const at::Tensor rows = index.reshape({-1});
  if (!include_self) to.index_fill_(dim, rows.to(at::kLong), neutral(reduce, out.scalar_type()));
  at::DimVector shape(from.dim(), 1);
  shape[dim] = index.numel();
  const at::Tensor positions = rows.reshape(shape).expand(from.sizes());
  scatter(stream_of(out), view_of(to), static_cast<int>(dim), view_of(positions), view_of(from),
          mode_of(reduce));
  if (reduce != "mean") return;
  const at::Tensor counts = include_self ? at::ones_like(to) : at::zeros_like(to);
  counts.index_add_(dim, rows, at::ones_like(from));
  counts.masked_fill_(counts == 0, 1);
  if (at::isFloatingType(out.scalar_type()) || at::isComplexType(out.scalar_type())) {
    to.div_(counts);
  } else {
    to.div_(counts, "floor");
  }
}

at::Tensor& GRAFT_OPERATOR(masked_scatter_)(at::Tensor& self, const at::Tensor& mask,
                                            const at::Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_scatter_ only supports boolean masks, "
              "but got mask with dtype ",
              mask.scalar_type());
  const at::Tensor spread = mask.expand(self.sizes());
  if (self.numel() == 0) return self;
  const at::Tensor ordinals = spread.reshape({-1}).cumsum(0).view(self.sizes());
  const at::Tensor values = source.contiguous().view({-1});
  masked_scatter(stream_of(self), view_of(self), view_of(spread), view_of(ordinals),
                 view_of(values));
  return self;
}

at::Tensor GRAFT_OPERATOR(repeat_interleave_Tensor)(const at::Tensor& repeats,
                                                    std::optional<int64_t> output_size) {
  if (repeats.scalar_type() == at::kInt) {
    return native::repeat_interleave_common<int32_t, repeat<int32_t>>(repeats, output_size);
  }
  require(repeats.scalar_type() == at::kLong);
  return native::repeat_interleave_common<int64_t, repeat<int64_t>>(repeats, output_size);
}

at::Tensor GRAFT_OPERATOR(segment_reduce)(const at::Tensor& data, c10::string_view,
                                          const std::optional<at::Tensor>& lengths,
                                          const std::optional<at::Tensor>&,
                                          const std::optional<at::Tensor>& offsets, int64_t,
                                          bool unsafe, const std::optional<at::Scalar>&) {
  check_segments(data, lengths, offsets, unsafe);
  throw_unfilled();
}

at::Tensor GRAFT_OPERATOR(_segment_reduce_backward)(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, c10::string_view,
    const std::optional<at::Tensor>& lengths, const std::optional<at::Tensor>& offsets,
    int64_t axis, const std::optional<at::Scalar>&) {
  const int64_t segments = check_segments(data, lengths, offsets, /*unsafe=*/true);
  at::DimVector sizes(data.sizes());
  sizes[at::maybe_wrap_dim(axis, data.dim())] = segments;
  TORCH_CHECK(grad.sizes() == sizes && output.sizes() == sizes,
              "_segment_reduce_backward: expected a gradient and an output of ", sizes, ", got ",
              grad.sizes(), " and ", output.sizes());
  throw_unfilled();
}

at::Tensor GRAFT_OPERATOR(tril_indices)(int64_t row, int64_t col, int64_t offset,
                                        std::optional<at::ScalarType> dtype,
                                        std::optional<at::Layout> layout,
                                        std::optional<at::Device> device,
                                        std::optional<bool> pin_memory) {
  const auto options = at::TensorOptions().dtype(dtype.value_or(at::kLong)).layout(layout);
  check_triangle(row, col, options);
  const int64_t columns = std::clamp<int64_t>(saturated_sum(row, offset), 0, col);
  const auto there = options.device(device).pinned_memory(pin_memory);
  return positions_of(at::ones({row, columns}, there.dtype(at::kBool)).tril(offset), there);
}

at::Tensor GRAFT_OPERATOR(triu_indices)(int64_t row, int64_t col, int64_t offset,
                                        std::optional<at::ScalarType> dtype,
                                        std::optional<at::Layout> layout,
                                        std::optional<at::Device> device,
                                        std::optional<bool> pin_memory) {
  const auto options = at::TensorOptions().dtype(dtype.value_or(at::kLong)).layout(layout);
  check_triangle(row, col, options);
  const int64_t before =
      offset == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -offset;
  const int64_t rows = std::clamp<int64_t>(saturated_sum(col, before), 0, row);
  const auto there = options.device(device).pinned_memory(pin_memory);
  return positions_of(at::ones({rows, col}, there.dtype(at::kBool)).triu(offset), there);
}

}  // namespace graft::binding
