// src/kernels/sort/sort.cpp: sorts the lines of a tensor by the way that suits their length.
#include "kernels/sort/sort.h"

#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/sort/key.h"
#include "kernels/sort/rows.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/line_view.h"

namespace graft {
namespace {

// Beyond it even many rows are sorted one after the other, which bounds the scratch memory.
constexpr int64_t kLongestRow = int64_t{1} << 22;

void sort_rows(Stream& stream, const SortRows& rows) {
  if (rows.n <= kRankedLength) return sort_rows_by_rank(stream, rows);
  const bool is_long = rows.n >= kLongRow && rows.rows < kManyRows;
  if (is_long || rows.n > kLongestRow) return sort_long_rows(stream, rows);
  sort_rows_by_digits(stream, rows);
}

}  // namespace

void sort(Stream& stream, const TensorView& values, const TensorView& indices,
          const TensorView& input, int dim, bool descending) {
  if (offer(stream, Operation::sort, writes(values, indices), reads(input),
            integers(dim, descending)))
    return;
  require_order(input.dtype, "sort");
  if (input.count() == 0) return;
  const TensorView lines = with_lines_last(input, dim);
  const TensorView sorted = with_lines_last(values, dim), places = with_lines_last(indices, dim);
  const bool shared = may_overlap(input, extent_bytes(input), values, extent_bytes(values));
  const StagedInput from(stream, lines, shared || !lines.contiguous());
  StagedOutput to(stream, sorted), found(stream, places);
  const int64_t n = lines.sizes[lines.rank - 1];
  sort_rows(stream, {to.view(), found.view(), from.view(), lines.count() / n, n, descending});
  to.finish();
  found.finish();
}

}  // namespace graft
