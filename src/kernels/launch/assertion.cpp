// src/kernels/launch/assertion.cpp: conditions on data that are reported late.
#include "kernels/launch/assertion.h"

#include <string>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/condition.h"
#include "kernels/launch/strided_loop.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

ir::Kernel build(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Address smallest = b.read(dtype), largest = b.read(dtype);
  const Condition condition(b);
  const Value low = b.scalar(GRAFT_FLOAT64), high = b.scalar(GRAFT_FLOAT64);
  const Value least = cast(Type::kF64, smallest.load(b.i64(0)));
  const Value most = cast(Type::kF64, largest.load(b.i64(0)));
  condition.require((least >= low) & (most <= high));
  return b.finish();
}

ir::Kernel build_nonzero(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Address integers = b.read(dtype);
  const Condition condition(b);
  StridedLoop loop(b, 1);
  loop.each([&](const std::vector<Value>& at) {
    const Value integer = integers.load(at[0]);
    condition.require(integer.type() == Type::kBool ? integer : integer != 0);
  });
  return b.finish();
}

std::string within_key(graft_dtype dtype) {
  return std::string("require_within_") + name_of(dtype);
}

const PackEntry kPackedAssertions([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_BOOL, GRAFT_INT64, GRAFT_FLOAT32}) {
    const std::string key = within_key(dtype);
    add(key, [=] { return build(key, dtype); });
  }
});

}  // namespace

void require_within(Stream& stream, const TensorView& smallest, const TensorView& largest,
                    double low, double high, std::string_view message) {
  const std::string key = within_key(smallest.dtype);
  Arguments arguments;
  arguments.read(smallest).read(largest);
  append_condition(arguments, stream, message);
  arguments.scalar(Scalar::of(low), sizeof(low)).scalar(Scalar::of(high), sizeof(high));
  launch_kernel(stream, key, 1, arguments, [&] { return build(key, smallest.dtype); });
}

void require_nonzero(Stream& stream, const TensorView& integers, std::string_view message) {
  TensorView each = integers;
  for (int d = 0; d < each.rank; ++d) {
    if (each.strides[d] == 0 && each.sizes[d] > 0) each.sizes[d] = 1;
  }
  if (each.count() == 0) return;
  const std::string key = std::string("require_nonzero_") + name_of(each.dtype);
  Arguments arguments;
  arguments.read(each);
  append_condition(arguments, stream, message);
  const WorkSplit split = append_loops(arguments, Axes::of({&each}));
  launch_kernel(stream, key, split.grid, arguments, [&] { return build_nonzero(key, each.dtype); });
}

}  // namespace graft
