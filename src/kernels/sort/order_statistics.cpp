// src/kernels/sort/order_statistics.cpp: one element of each line by its place in the sorted line.
#include <functional>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/sort/key.h"
#include "kernels/sort/radix_select.h"
#include "kernels/sort/rows.h"
#include "kernels/sort/sort.h"
#include "kernels/tensor/line_view.h"

namespace graft {
namespace {

using namespace ir;

const char* text_of(Pick which) {
  static constexpr const char* kNames[] = {"nth", "median", "nan_median", "mode"};
  return kNames[static_cast<size_t>(which)];
}

// How many of a row are NaN.
Value nan_count(Builder& b, const Address& sorted, Value base, Value n) {
  if (!is_floating(sorted.dtype)) return b.i64(0);
  return ir::reduce(
      b.i64(0), b.i64(0), n,
      [&](Value i) { return cast(Type::kI64, is_nan(sorted.load(base + i))); }, std::plus<>(), 16);
}

// The end of the longest run of equal elements; the front one of several. NaN equals nothing.
Value longest_run(Builder& b, const Address& sorted, Value base, Value n) {
  const Variable length(b.i64(0)), longest(b.i64(0)), best(b.i64(0));
  b.loop(b.i64(0), n, [&](Value i) {
    const Value next = ir::minimum(i + 1, n - 1);
    const Value ends = (i == n - 1) | (sorted.load(base + i) != sorted.load(base + next));
    const Value grown = length.get() + 1;
    const Value wins = ends & (grown > longest.get());
    longest = select(wins, grown, longest.get());
    best = select(wins, i, best.get());
    length = select(ends, b.i64(0), grown);
  });
  return best.get();
}

Value place_of(Builder& b, Pick which, const Address& sorted, Value base, Value n, Value nth) {
  if (which == Pick::kNth) return nth;
  if (which == Pick::kMode) return longest_run(b, sorted, base, n);
  const Value valid = n - nan_count(b, sorted, base, n);
  if (which == Pick::kMedian) return select(valid == n, (n - 1) / 2, valid);
  return ir::maximum(valid - 1, b.i64(0)) / 2;
}

ir::Kernel build(const std::string& name, Pick which, graft_dtype dtype) {
  Builder b(name);
  const Address values = b.write(dtype), indices = b.write(GRAFT_INT64);
  const Address sorted = b.read(dtype), places = b.read(GRAFT_INT64);
  const Value rows = b.index(), per_item = b.index(), n = b.index(), nth = b.index();
  each_line(b, rows, per_item, [&](Value row) {
    const Value base = row * n;
    const Value at = base + place_of(b, which, sorted, base, n, nth);
    values.store(row, sorted.load(at));
    indices.store(row, places.load(at));
  });
  return b.finish();
}

// Sorts the lines, then takes the elements from their places.
void pick_from_sorted(Stream& stream, Pick which, const TensorView& values,
                      const TensorView& indices, const TensorView& lines, int64_t n) {
  const ScratchTensor sorted(stream, lines, lines.dtype), places(stream, lines, GRAFT_INT64);
  sort(stream, sorted.view(), places.view(), lines, lines.rank - 1, false);
  const int64_t length = lines.sizes[lines.rank - 1];
  const WorkSplit split = split_work(lines.count() / length, which == Pick::kNth ? 1 : length);
  Arguments arguments;
  arguments.write(values).write(indices).read(sorted.view()).read(places.view());
  arguments.index(split.lines).index(split.per_item).index(length).index(n);
  const std::string key = std::string("pick_") + text_of(which) + "_" + name_of(lines.dtype);
  launch_built(stream, key, split.grid, arguments, build, which, lines.dtype);
}

}  // namespace

void pick(Stream& stream, Pick which, const TensorView& values, const TensorView& indices,
          const TensorView& input, int dim, int64_t n) {
  if (offer(stream, Operation::pick, writes(values, indices), reads(input),
            integers(which, dim, n)))
    return;
  require_order(input.dtype, text_of(which));
  if (values.count() == 0) return;
  const TensorView lines = with_lines_last(input, dim);
  const TensorView picked = with_lines_last(values, dim), found = with_lines_last(indices, dim);
  StagedOutput to(stream, picked), at(stream, found);
  const int64_t length = lines.sizes[lines.rank - 1];
  if (which != Pick::kMode && length >= kLongRow && lines.count() / length < kManyRows) {
    const StagedInput from(stream, lines);
    pick_from_long_rows(stream, which, to.view(), at.view(), from.view(), length, n);
  } else {
    pick_from_sorted(stream, which, to.view(), at.view(), lines, n);
  }
  to.finish();
  at.finish();
}

}  // namespace graft
