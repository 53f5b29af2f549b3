// src/kernels/move/masked.cpp: moving elements that a mask or counts choose.
#include "kernels/move/masked.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/condition.h"
#include "kernels/launch/strided_loop.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/raw_dtype.h"

namespace graft {
namespace {

using namespace ir;

ir::Kernel build_scatter(const std::string& key, graft_dtype data, int64_t width) {
  Builder b(key);
  const Address to = b.update(data), mask = b.read(GRAFT_BOOL), ordinals = b.read(GRAFT_INT64);
  const Address source = b.read(data);
  const IndexChecker checker(b);
  const Value count = b.index();
  StridedLoop loop(b, 3);
  loop.each([&](const std::vector<Value>& at) {
    b.if_(mask.load(at[1]), [&] {
      const Value from = checker.check(ordinals.load(at[2]) - 1, count, false);
      b.if_(count > 0, [&] {
        for (int64_t part = 0; part < width; ++part) {
          to.store(at[0] * width + part, source.load(from * width + part));
        }
      });
    });
  });
  return b.finish();
}

ir::Kernel build_fill(const std::string& key, graft_dtype data, int64_t width) {
  Builder b(key);
  const Address to = b.update(data), mask = b.read(GRAFT_BOOL), value = b.read(data);
  StridedLoop loop(b, 2);
  loop.each([&](const std::vector<Value>& at) {
    b.if_(mask.load(at[1]), [&] {
      for (int64_t part = 0; part < width; ++part) {
        to.store(at[0] * width + part, value.load(b.i64(part)));
      }
    });
  });
  return b.finish();
}

ir::Kernel build_repeat(const std::string& key, graft_dtype index) {
  Builder b(key);
  const Address to = b.write(index), repeats = b.read(index), ends = b.read(GRAFT_INT64);
  const Condition fits(b), positive(b);
  const Value lines = b.index(), per_item = b.index(), count = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value end = ends.load(line), number = cast(ir::Type::kI64, repeats.load(line));
    const Value begin = end - number;
    positive.require(number >= 0);
    fits.require((line < lines - 1) | (end == count));
    b.vector_loop(ir::maximum(begin, b.i64(0)), ir::minimum(end, count),
                  [&](Value i) { to.store(i, cast(ir::compute_type(index), line)); });
  });
  return b.finish();
}

}  // namespace

void masked_scatter(Stream& stream, const TensorView& to, const TensorView& mask,
                    const TensorView& ordinals, const TensorView& source) {
  if (offer(stream, Operation::masked_scatter, writes(to), reads(mask, ordinals, source))) return;
  if (to.count() == 0) return;
  const graft_dtype data = raw_dtype(to.dtype);
  const int64_t width = raw_width(to.dtype);
  const std::string key =
      std::string("masked_scatter_") + name_of(data) + (width == 1 ? "" : "_pairs");
  Arguments arguments;
  arguments.update(to).read(mask).read(ordinals).read(source);
  append_checker(arguments, stream);
  arguments.index(source.count());
  const WorkSplit split = append_loops(arguments, Axes::of({&to, &mask, &ordinals}));
  launch_built(stream, key, split.grid, arguments, build_scatter, data, width);
}

bool overlaps_itself(const TensorView& view) {
  if (view.count() == 0) return false;
  Axes axes = Axes::of({&view});
  axes.sort(0);
  int64_t reach = 0;
  for (int i = axes.rank - 1; i >= 0; --i) {
    if (axes.at[i].strides[0] <= reach) return true;
    reach += (axes.at[i].size - 1) * axes.at[i].strides[0];
  }
  return false;
}

void masked_fill(Stream& stream, const TensorView& to, const TensorView& mask,
                 const Scalar& value) {
  if (offer(stream, Operation::fill_masked, writes(to), reads(mask), scalars(value.to(to.dtype))))
    return;
  if (to.count() == 0) return;
  const graft_dtype data = raw_dtype(to.dtype);
  const int64_t width = raw_width(to.dtype);
  const std::string key =
      std::string("masked_fill_alone_") + name_of(data) + (width == 1 ? "" : "_pairs");
  const ScratchTensor single(stream, to.dtype, {});
  fill(stream, single.view(), value);
  Arguments arguments;
  arguments.update(to).read(mask).read(single.view());
  const WorkSplit split = append_loops(arguments, Axes::of({&to, &mask}));
  launch_built(stream, key, split.grid, arguments, build_fill, data, width);
}

void repeat_positions(Stream& stream, const TensorView& output, const TensorView& repeats,
                      const TensorView& ends) {
  if (offer(stream, Operation::repeat_positions, writes(output), reads(repeats, ends))) return;
  const int64_t lines = repeats.count();
  if (lines == 0) return;
  const WorkSplit split = split_work(lines, output.count() / lines + 8);
  const std::string key = std::string("repeat_positions_") + name_of(output.dtype);
  Arguments arguments;
  arguments.write(output).read(repeats).read(ends);
  append_condition(arguments, stream, "allocated size does not match required size");
  append_condition(arguments, stream, "repeats can not be negative");
  arguments.index(split.lines).index(split.per_item).index(output.count());
  launch_built(stream, key, split.grid, arguments, build_repeat, output.dtype);
}

}  // namespace graft
