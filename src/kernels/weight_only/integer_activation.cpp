// src/kernels/weight_only/integer_activation.cpp: a floating factor of half precision in integers.
#include "kernels/weight_only/integer_activation.h"

#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/weight_only/weight.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Type;
using ir::Value;

constexpr double kMost = 32767, kLeast = 1e-30;

struct IntegerActivationKernel {
  graft_dtype dtype;

  std::string key() const { return std::string("weight_only_integers_") + name_of(dtype); }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(GRAFT_INT32), sums = b.write(GRAFT_FLOAT32);
    const Address steps = b.write(GRAFT_FLOAT32), from = b.read(dtype);
    const Value lines = b.index(), per_item = b.index(), groups = b.index(), group = b.index();
    const Value row_stride = b.index(), stride = b.index();
    each_line(b, lines, per_item, [&](Value line) {
      const Value source = line / groups * row_stride, first = line % groups * group;
      const Value none = b.i64(0);
      const auto element = [&](Value i) { return from.load(source + (first + i) * stride); };
      const auto magnitude = [&](Value i) { return abs(element(i)); };
      const Value largest =
          ir::maximum(ir::reduce(b.f32(0), none, group, magnitude, ir::maximum, 16), b.f32(kLeast));
      sums.store(line,
                 ir::reduce(
                     b.f32(0), none, group, element, [](Value x, Value y) { return x + y; }, 16));
      steps.store(line, largest / kMost);
      const Value scale = kMost / largest;
      b.loop(none, group / kNibblesOfWord, [&](Value word) {
        for (int64_t j = 0; j < kPairsOfWord; ++j) {
          const Value at = word * kNibblesOfWord + j;
          const Value low = integer(element(at) * scale);
          const Value high = integer(element(at + kPairsOfWord) * scale);
          to.store((line * group / kNibblesOfWord + word) * kPairsOfWord + j,
                   (low & 0xffff) | high << 16);
        }
      });
    });
    return b.finish();
  }

  // Of what is not finite 0.
  static Value integer(Value number) {
    return cast(Type::kI32, round(select(abs(number) < kMost + 0.5, number, 0)));
  }
};

}  // namespace

IntegerActivation::IntegerActivation(Stream& stream, const TensorView& factor, int64_t group)
    : bytes_(static_cast<uint64_t>(factor.sizes[0] * factor.sizes[1]) * sizeof(int16_t)),
      group_bytes_(static_cast<uint64_t>(factor.sizes[0] * (factor.sizes[1] / group)) *
                   sizeof(float)),
      workspace_(stream, bytes_ + 2 * group_bytes_) {
  const int64_t groups = factor.sizes[1] / group;
  const WorkSplit split = split_work(factor.sizes[0] * groups, group);
  Arguments arguments;
  arguments.address(address(), bytes_, GRAFT_ACCESS_WRITE);
  arguments.address(sums(), group_bytes_, GRAFT_ACCESS_WRITE);
  arguments.address(steps(), group_bytes_, GRAFT_ACCESS_WRITE).read(factor);
  arguments.index(split.lines).index(split.per_item).index(groups).index(group);
  arguments.index(factor.strides[0]).index(factor.strides[1]);
  launch_kernel(stream, IntegerActivationKernel{factor.dtype}, split.grid, arguments);
}

}  // namespace graft
