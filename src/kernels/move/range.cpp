// src/kernels/move/range.cpp: evenly spaced numbers.
#include "kernels/move/range.h"

#include <bit>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// first + i * step, or the same counted back from last in the second half.
ir::Kernel build(const std::string& key, graft_dtype data, bool two_ended) {
  Builder b(key);
  const Address to = b.write(data);
  const Value lines = b.index(), per_item = b.index();
  const bool real = is_floating(data) || two_ended;
  const graft_dtype number = real ? GRAFT_FLOAT64 : GRAFT_INT64;
  const Value first = b.scalar(number), step = b.scalar(number);
  const Value last = two_ended ? b.scalar(number) : first;
  const Value begin = b.item() * per_item;
  b.vector_loop(begin, ir::minimum(begin + per_item, lines), [&](Value i) {
    const Value forward = first + cast(first.type(), i) * step;
    if (!two_ended) return to.store(i, forward);
    const Value back = last - cast(first.type(), lines - 1 - i) * step;
    to.store(i, select(i < lines / 2, forward, back));
  });
  return b.finish();
}

void run(Stream& stream, const TensorView& output, std::initializer_list<Scalar> scalars,
         bool two_ended) {
  const int64_t count = output.count();
  if (count == 0) return;
  StagedOutput to(stream, output);
  const std::string key = std::string(two_ended ? "linspace_" : "arange_") + name_of(output.dtype);
  const WorkSplit split = split_work(count, 1);
  Arguments arguments;
  arguments.write(to.view()).index(split.lines).index(split.per_item);
  for (const Scalar& scalar : scalars) arguments.scalar(scalar, sizeof(uint64_t));
  launch_built(stream, key, split.grid, arguments, build, output.dtype, two_ended);
  to.finish();
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_INT64}) {
    const std::string key = std::string("arange_") + name_of(dtype);
    add(key, [=] { return build(key, dtype, false); });
  }
  const std::string linspace = "linspace_float32";
  add(linspace, [=] { return build(linspace, GRAFT_FLOAT32, true); });
});

}  // namespace

void arange(Stream& stream, const TensorView& output, Scalar start, Scalar step) {
  if (offer(stream, Operation::arange, writes(output), scalars(start, step))) return;
  const graft_dtype number = is_floating(output.dtype) ? GRAFT_FLOAT64 : GRAFT_INT64;
  run(stream, output, {start.to(number), step.to(number)}, false);
}

void linspace(Stream& stream, const TensorView& output, Scalar start, Scalar end) {
  if (offer(stream, Operation::linspace, writes(output), scalars(start, end))) return;
  if (is_complex(output.dtype)) {
    const Scalar first = start.to(GRAFT_COMPLEX128), last = end.to(GRAFT_COMPLEX128);
    for (int part = 0; part < 2; ++part) {
      linspace(stream, complex_part(output, part),
               Scalar::of(std::bit_cast<double>(first.bits[part])),
               Scalar::of(std::bit_cast<double>(last.bits[part])));
    }
    return;
  }
  const int64_t count = output.count();
  if (count == 1)
    return run(stream, output, {start.to(GRAFT_FLOAT64), Scalar::of(0.0), start.to(GRAFT_FLOAT64)},
               true);
  const double first = start.real(), last = end.real();
  const double step = (last - first) / static_cast<double>(count - 1);
  run(stream, output, {Scalar::of(first), Scalar::of(step), Scalar::of(last)}, true);
}

}  // namespace graft
