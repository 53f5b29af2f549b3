// src/torch/ops/unique.cpp: the different elements, or slices, of a tensor.
#include <ATen/ops/cat.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "kernels/sort/compaction.h"
#include "kernels/sort/sort.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Unique = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // elements, inverse, counts

at::TensorOptions long_like(const at::Tensor& tensor) { return tensor.options().dtype(at::kLong); }

// Where runs of equal neighbours start, how long they are, and which run each element is in.
struct Runs {
  at::Tensor starts, counts, inverse;
};

// marks: where runs start. places, where defined: where each element comes from.
Runs find_runs(const at::Tensor& marks, const at::Tensor& places, bool inverse, bool counts) {
  Compaction found(stream_of(marks), view_of(marks));
  const at::Tensor total = at::empty({}, long_like(marks));
  found.count(view_of(total));
  const auto n = total.item<int64_t>();
  const int64_t size = marks.numel();
  Runs runs{at::empty({n}, long_like(marks)), at::empty({0}, long_like(marks)),
            at::empty({0}, long_like(marks))};
  found.positions(view_of(runs.starts), 1, &size, n);
  if (counts) {
    runs.counts = at::diff(runs.starts, 1, 0, std::nullopt, at::full({1}, size, long_like(marks)));
  }
  if (inverse) {
    runs.inverse = at::empty({size}, long_like(marks));
    found.numbers(view_of(runs.inverse), OptionalView(places).get());
  }
  return runs;
}

// Lines of a contiguous matrix (or one line), sorted, with the starts of equal elements marked.
struct Sorted {
  at::Tensor values, places, marks;
  explicit Sorted(const at::Tensor& lines)
      : values(at::empty_like(lines)),
        places(at::empty_like(lines, long_like(lines))),
        marks(at::empty_like(lines, lines.options().dtype(at::kBool))) {
    const int last = static_cast<int>(lines.dim()) - 1;
    sort(stream_of(lines), view_of(values), view_of(places), view_of(lines), last, false);
    mark_runs(stream_of(lines), view_of(marks), view_of(values));
  }
};

at::Tensor marks_of(const at::Tensor& line) {
  at::Tensor marks = at::empty_like(line, line.options().dtype(at::kBool));
  mark_runs(stream_of(line), view_of(marks), view_of(line));
  return marks;
}

Unique nothing(const at::Tensor& self, bool inverse) {
  at::Tensor places =
      inverse ? at::empty(self.sizes(), long_like(self)) : at::empty({0}, long_like(self));
  return {at::empty({0}, self.options()), places, at::empty({0}, long_like(self))};
}

Unique unique_elements(const at::Tensor& self, bool inverse, bool counts) {
  if (self.numel() == 0) return nothing(self, inverse);
  const Sorted sorted(self.contiguous().view({-1}));
  Runs runs = find_runs(sorted.marks, sorted.places, inverse, counts);
  if (inverse) runs.inverse = runs.inverse.view(self.sizes());
  return {sorted.values.index_select(0, runs.starts), runs.inverse, runs.counts};
}

Unique consecutive_elements(const at::Tensor& self, bool inverse, bool counts) {
  require(!self.is_complex());
  if (self.numel() == 0) return nothing(self, inverse);
  const at::Tensor line = self.contiguous().view({-1});
  Runs runs = find_runs(marks_of(line), {}, inverse, counts);
  if (inverse) runs.inverse = runs.inverse.view(self.sizes());
  return {line.index_select(0, runs.starts), runs.inverse, runs.counts};
}

// In each line, how many smaller elements there are: equal where elements are.
at::Tensor ranks_of(const at::Tensor& lines) {
  const Sorted sorted(lines);
  const at::Tensor numbers = sorted.marks.cumsum(1, at::kLong).sub_(1);
  return at::empty_like(numbers).scatter_(1, sorted.places, numbers);
}

// One number per row, in the order of the rows. The ranks of columns are joined pair by pair.
at::Tensor row_keys(const at::Tensor& rows) {
  at::Tensor columns = rows.t().contiguous();
  const int64_t n = rows.size(0);
  if (columns.size(0) > 1) columns = ranks_of(columns);
  while (columns.size(0) > 1) {
    const int64_t width = columns.size(0), pairs = width / 2;
    const at::Tensor first = columns.slice(0, 0, 2 * pairs, 2);
    const at::Tensor second = columns.slice(0, 1, 2 * pairs, 2);
    at::Tensor joined = first.mul(n).add_(second);
    if (width > 2) joined = ranks_of(joined);
    if (width % 2 != 0) joined = at::cat({joined, columns.slice(0, width - 1)});
    columns = joined;
  }
  return columns.view({-1});
}

// The slices along dim as rows.
struct Slices {
  at::Tensor moved, rows;
  int64_t dim;
  Slices(const at::Tensor& self, int64_t dim) : moved(self.moveaxis(dim, 0)), dim(dim) {
    rows = moved.contiguous().view({moved.size(0), -1});
  }
  at::Tensor selected(const at::Tensor& places) const {
    at::DimVector sizes(moved.sizes());
    sizes[0] = places.size(0);
    return rows.index_select(0, places).view(sizes).moveaxis(0, dim);
  }
};

// Whether there is anything to compare; throws where slices have no elements.
bool has_slices(const at::Tensor& self, int64_t dim) {
  const auto zeros = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1,
                "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return false;
  }
  TORCH_CHECK(
      zeros == 0,
      "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  return true;
}

Unique no_slices(const at::Tensor& self) {
  return {at::empty(self.sizes(), self.options()), at::empty({0}, long_like(self)),
          at::empty({0}, long_like(self))};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_unique)(const at::Tensor& self, bool,
                                                           bool return_inverse) {
  const Unique found = unique_elements(self, return_inverse, false);
  return {std::get<0>(found), std::get<1>(found)};
}

Unique GRAFT_OPERATOR(_unique2)(const at::Tensor& self, bool, bool return_inverse,
                                bool return_counts) {
  return unique_elements(self, return_inverse, return_counts);
}

Unique GRAFT_OPERATOR(unique_dim)(const at::Tensor& self, int64_t dim, bool, bool return_inverse,
                                  bool return_counts) {
  if (!has_slices(self, dim)) return no_slices(self);
  require(!self.is_complex());
  const Slices slices(self, dim);
  const Sorted sorted(row_keys(slices.rows));
  const Runs runs = find_runs(sorted.marks, sorted.places, return_inverse, return_counts);
  return {slices.selected(sorted.places.index_select(0, runs.starts)), runs.inverse, runs.counts};
}

Unique GRAFT_OPERATOR(unique_dim_consecutive)(const at::Tensor& self, int64_t dim,
                                              bool return_inverse, bool return_counts) {
  if (!has_slices(self, dim)) return no_slices(self);
  require(!self.is_complex());
  const Slices slices(self, dim);
  const int64_t n = slices.rows.size(0);
  const at::Tensor differ = slices.rows.slice(0, 1).ne(slices.rows.slice(0, 0, n - 1)).any(1);
  const at::Tensor marks = at::cat({at::full({1}, true, differ.options()), differ});
  const Runs runs = find_runs(marks, {}, return_inverse, return_counts);
  return {slices.selected(runs.starts), runs.inverse, runs.counts};
}

Unique GRAFT_OPERATOR(unique_consecutive)(const at::Tensor& self, bool return_inverse,
                                          bool return_counts, std::optional<int64_t> dim) {
  if (!dim.has_value() || (*dim == 0 && self.dim() == 1)) {
    return consecutive_elements(self, return_inverse, return_counts);
  }
  return GRAFT_OPERATOR(unique_dim_consecutive)(self, *dim, return_inverse, return_counts);
}

}  // namespace graft::binding
