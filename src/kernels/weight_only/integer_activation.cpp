// src/kernels/weight_only/integer_activation.cpp: a floating factor of half precision in integers.
#include "kernels/weight_only/integer_activation.h"

#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Type;
using ir::Value;
using ir::Variable;

constexpr double kMost = 32767, kLeast = 1e-30;

struct IntegerActivationKernel {
  WordKind kind;
  graft_dtype dtype;

  std::string key() const {
    return std::string("weight_only_integers_") +
           (kind == WordKind::kBytes ? "bytes_" : "nibbles_") + name_of(dtype);
  }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(GRAFT_INT32), sums = b.write(GRAFT_FLOAT32);
    const Address steps = b.write(GRAFT_FLOAT32), from = b.read(dtype);
    const Value lines = b.index(), per_item = b.index(), groups = b.index(), group = b.index();
    const Value k = b.index(), row_stride = b.index(), stride = b.index();
    each_line(b, lines, per_item, [&](Value line) {
      const Value row = line / groups, first = line % groups * group;
      const Value last = ir::minimum(first + group, k);
      const auto element = [&](Value i) { return from.load(row * row_stride + i * stride); };
      const auto magnitude = [&](Value i) { return abs(element(i)); };
      const Value most = ir::reduce(b.f32(0), first, last, magnitude, ir::maximum, 16);
      const Value largest = ir::maximum(most, b.f32(kLeast)), scale = kMost / largest;
      const auto rounded = [&](Value i) { return integer(element(i) * scale); };
      const Variable sum(b.constant(Type::kI32, 0));
      const auto pair = [&](Value i, int64_t apart) {
        const Value low = rounded(i), high = rounded(i + apart);
        sum = sum.get() + low + high;
        return (low & 0xffff) | high << 16;
      };
      const Value target = row * (k / 2);
      if (kind == WordKind::kNibbles) {
        const auto word = [&](Value at) {
          const int64_t pairs = kNibblesOfWord / 2;
          for (int64_t j = 0; j < pairs; ++j) to.store(target + at / 2 + j, pair(at + j, pairs));
        };
        b.loop(first, last, word, b.i64(kNibblesOfWord));
      } else {
        const auto word = [&](Value at) {
          const Value block = at / kBytesOfBlock * kBytesOfBlock,
                      place = at % kBytesOfBlock / kBytesOfWord;
          for (int64_t j = 0; j < 2; ++j) {
            to.store(target + block / 2 + j * kWords + place, pair(at + j, 2));
          }
        };
        b.loop(first, last, word, b.i64(kBytesOfWord));
      }
      const Value step = largest / kMost;
      steps.store(line, step);
      sums.store(line, cast(Type::kF32, sum.get()) * step);
    });
    return b.finish();
  }

  // Of what is not finite 0.
  static Value integer(Value number) {
    return cast(Type::kI32, round(select(abs(number) < kMost + 0.5, number, 0)));
  }
};

}  // namespace

IntegerActivation::IntegerActivation(Stream& stream, const TensorView& factor, WordKind kind,
                                     int64_t group)
    : groups_((factor.sizes[1] + group - 1) / group),
      bytes_(static_cast<uint64_t>(factor.sizes[0] * factor.sizes[1]) * sizeof(int16_t)),
      group_bytes_(static_cast<uint64_t>(factor.sizes[0] * groups_) * sizeof(float)),
      workspace_(stream, bytes_ + 2 * group_bytes_) {
  const WorkSplit split = split_work(factor.sizes[0] * groups_, group);
  Arguments arguments;
  arguments.address(address(), bytes_, GRAFT_ACCESS_WRITE);
  arguments.address(sums(), group_bytes_, GRAFT_ACCESS_WRITE);
  arguments.address(steps(), group_bytes_, GRAFT_ACCESS_WRITE).read(factor);
  arguments.index(split.lines).index(split.per_item).index(groups_).index(group);
  arguments.index(factor.sizes[1]).index(factor.strides[0]).index(factor.strides[1]);
  launch_kernel(stream, IntegerActivationKernel{kind, factor.dtype}, split.grid, arguments);
}

}  // namespace graft
