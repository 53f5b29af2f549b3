// src/kernels/sort/membership.cpp: which elements are among a few others.
#include "kernels/sort/membership.h"

#include <algorithm>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/sort/key.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;

// A line is a block of elements that are compared side by side.
ir::Kernel build(const std::string& name, graft_dtype dtype) {
  Builder b(name);
  const Address output = b.write(GRAFT_BOOL), elements = b.read(dtype), tests = b.read(dtype);
  const Value lines = b.index(), per_item = b.index(), n = b.index(), count = b.index();
  const Value invert = b.index() != 0;
  const Lanes found(b, Type::kI32, kBlock);
  each_line(b, lines, per_item, [&](Value line) {
    const Value first = line * kBlock, width = ir::minimum(n - first, b.i64(kBlock));
    b.vector_loop(b.i64(0), b.i64(kBlock),
                  [&](Value lane) { found.store(lane, b.constant(Type::kI32, 0)); });
    b.loop(b.i64(0), count, [&](Value j) {
      const Value test = tests.load(j);
      b.vector_loop(b.i64(0), width, [&](Value lane) {
        const Value same = elements.load(first + lane) == test;
        found.store(lane, found.load(lane) | cast(Type::kI32, same));
      });
    });
    b.vector_loop(b.i64(0), width, [&](Value lane) {
      output.store(first + lane, (found.load(lane) != 0) != invert);
    });
  });
  return b.finish();
}

}  // namespace

void is_among(Stream& stream, const TensorView& output, const TensorView& elements,
              const TensorView& tests, bool invert) {
  if (offer(stream, Operation::is_among, writes(output), reads(elements, tests), integers(invert)))
    return;
  require_order(elements.dtype, "isin");
  const int64_t n = elements.count(), count = tests.count();
  if (n == 0) return;
  const WorkSplit split = split_work((n + kBlock - 1) / kBlock, kBlock * (count + 1));
  Arguments arguments;
  arguments.write(output).read(elements).read(tests);
  arguments.index(split.lines).index(split.per_item).index(n).index(count).index(invert ? 1 : 0);
  const std::string key = std::string("is_among_") + name_of(elements.dtype);
  launch_built(stream, key, split.grid, arguments, build, elements.dtype);
}

}  // namespace graft
