// src/kernels/sort/search.cpp: binary search in sorted rows, a block of values side by side.
#include "kernels/sort/search.h"

#include <bit>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/sort/key.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;

struct SearchKernel {
  graft_dtype dtype, output;
  bool sorter, right;

  std::string key() const {
    return std::string("search_sorted_") + name_of(dtype) + "_" + name_of(output) +
           (sorter ? "_sorter" : "") + (right ? "_right" : "");
  }

  // A line is a block of values of one row. Every step halves the ranges of all its lanes.
  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(output), from = b.read(dtype), values = b.read(dtype);
    const Address order = sorter ? b.read(GRAFT_INT64) : Address{};
    const Value lines = b.index(), per_item = b.index(), n = b.index(), m = b.index();
    const Value row_step = b.index(), steps = b.index();
    const Lanes low(b, Type::kI64, kBlock), high(b, Type::kI64, kBlock);
    each_line(b, lines, per_item, [&](Value line) {
      const Value blocks = (m + (kBlock - 1)) / kBlock;
      const Value row = line / blocks, first = line % blocks * kBlock;
      const Value base = row * row_step, at = row * m + first;
      const Value width = ir::minimum(m - first, b.i64(kBlock));
      b.vector_loop(b.i64(0), width, [&](Value lane) {
        low.store(lane, b.i64(0));
        high.store(lane, n);
      });
      b.loop(b.i64(0), steps, [&](Value) {
        b.vector_loop(b.i64(0), width, [&](Value lane) {
          const Value begin = low.load(lane), end = high.load(lane);
          const Value middle = ir::minimum((begin + end) / 2, n - 1);
          const Value place = sorter ? base + order.load(base + middle) : base + middle;
          const Value found = from.load(place), value = values.load(at + lane);
          const Value above = right ? found > value : found >= value;
          const Value open = begin < end;
          low.store(lane, select(open & !above, middle + 1, begin));
          high.store(lane, select(open & above, middle, end));
        });
      });
      b.vector_loop(b.i64(0), width, [&](Value lane) {
        to.store(at + lane, cast(ir::compute_type(output), low.load(lane)));
      });
    });
    return b.finish();
  }
};

}  // namespace

void search_sorted(Stream& stream, const TensorView& output, const TensorView& sorted,
                   const TensorView& values, const TensorView* sorter, bool right) {
  if (offer(stream, Operation::search_sorted, writes(output), reads(sorted, values, sorter),
            integers(right)))
    return;
  require_order(values.dtype, "searchsorted");
  if (output.count() == 0) return;
  const int64_t n = sorted.sizes[sorted.rank - 1];
  const bool one_row = sorted.rank == 1;
  const int64_t rows = one_row ? 1 : values.count() / values.sizes[values.rank - 1];
  const int64_t m = values.count() / rows;
  const int64_t steps = std::bit_width(static_cast<uint64_t>(n));
  const WorkSplit split =
      split_work(rows * ((m + kBlock - 1) / kBlock), std::min(m, kBlock) * (steps + 1));
  const SearchKernel kernel{values.dtype, output.dtype, sorter != nullptr, right};
  Arguments arguments;
  arguments.write(output).read(sorted).read(values);
  if (sorter != nullptr) arguments.read(*sorter);
  arguments.index(split.lines).index(split.per_item).index(n).index(m);
  arguments.index(one_row ? 0 : n).index(steps);
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace graft
