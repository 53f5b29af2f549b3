// src/kernels/weight_only/integer_activation.cpp: a floating factor of half precision in integers.
#include "kernels/weight_only/integer_activation.h"

#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

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
      const Variable sum(b.constant(Type::kI32, 0));
      const auto pack = [&](Value at) {
        const Lanes rounded = round_elements(b, at, [&](Value i) { return element(i) * scale; });
        for (int64_t i = 0; i < elements(); ++i) sum = sum.get() + rounded.load(b.i64(i));
        write_pairs(b, to, (row * k + at) / 2, rounded);
      };
      b.loop(first, last, pack, b.i64(elements()));
      const Value step = largest / kMost;
      steps.store(line, step);
      sums.store(line, cast(Type::kF32, sum.get()) * step);
    });
    return b.finish();
  }

  // Of a word of nibbles, or of a block of bytes.
  int64_t elements() const { return kind == WordKind::kNibbles ? kNibblesOfWord : kBytesOfBlock; }

  // number(i) of the elements from there on; 0 of what is not finite.
  template <class Number>
  Lanes round_elements(Builder& b, Value at, const Number& number) const {
    Lanes rounded(b, Type::kI32, static_cast<uint32_t>(elements()));
    b.vector_loop(b.i64(0), b.i64(elements()), [&](Value i) {
      const Value value = number(at + i);
      rounded.store(i, cast(Type::kI32, round(select(abs(value) < kMost + 0.5, value, 0))));
    });
    return rounded;
  }

  // Words of either kind have a pair for every `apart` elements: element j and j + apart.
  void write_pairs(Builder& b, const Address& to, Value target, const Lanes& rounded) const {
    const int64_t of_word = kind == WordKind::kNibbles ? kNibblesOfWord : kBytesOfWord;
    const int64_t words = elements() / of_word, apart = of_word / 2;
    for (int64_t j = 0; j < apart; ++j) {
      b.vector_loop(b.i64(0), b.i64(words), [&](Value word) {
        const Value low = rounded.load(word * of_word + j);
        const Value high = rounded.load(word * of_word + (j + apart));
        to.store(target + j * words + word, (low & 0xffff) | high << 16);
      });
    }
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
  append(arguments, GRAFT_ACCESS_WRITE);
  arguments.read(factor);
  arguments.index(split.lines).index(split.per_item).index(groups_).index(group);
  arguments.index(factor.sizes[1]).index(factor.strides[0]).index(factor.strides[1]);
  launch_kernel(stream, IntegerActivationKernel{kind, factor.dtype}, split.grid, arguments);
}

void IntegerActivation::append(Arguments& arguments, uint32_t access) const {
  arguments.address(workspace_.address(), bytes_, access);
  for (const uint64_t at : {bytes_, bytes_ + group_bytes_}) {
    arguments.address(workspace_.address() + at, group_bytes_, access);
  }
}

}  // namespace graft
