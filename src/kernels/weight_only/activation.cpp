// src/kernels/weight_only/activation.cpp: lays the floating factor out for the decoding kernels.
#include "kernels/weight_only/activation.h"

#include <cmath>
#include <functional>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// What undoes the place of an integer in its word; the last is shifted down instead.
double factor_of(int64_t place, int64_t places) {
  return place + 1 == places ? 1.0 : std::ldexp(1.0, static_cast<int>(-32 / places * place));
}

struct ActivationKernel {
  WordKind kind;
  graft_dtype dtype;

  std::string key() const {
    return std::string("weight_only_activation_") +
           (kind == WordKind::kBytes ? "bytes_" : "nibbles_") + name_of(dtype);
  }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(GRAFT_FLOAT32), sums = b.write(GRAFT_FLOAT32), from = b.read(dtype);
    const Value lines = b.index(), per_item = b.index(), groups = b.index(), group = b.index();
    const Value k = b.index(), depth = b.index(), row_stride = b.index(), stride = b.index();
    each_line(b, lines, per_item, [&](Value line) {
      const Value row = line / groups, first = line % groups * group;
      const Value source = row * row_stride, target = row * depth;
      const Value last = ir::minimum(first + group, k);
      const auto element = [&](Value i) { return from.load(source + i * stride); };
      sums.store(line, ir::reduce(b.f32(0), first, last, element, std::plus<>(), 16));
      if (kind == WordKind::kNibbles) {
        const auto nibbles = [&](Value word) { write_word(to, target + word, element, word); };
        b.loop(first, last, nibbles, b.i64(kNibblesOfWord));
      } else {
        const auto block = [&](Value at) { write_block(b, to, target, element, at, k); };
        b.loop(first, ir::minimum(first + group, depth), block, b.i64(kBytesOfBlock));
      }
    });
    return b.finish();
  }

  template <class Element>
  void write_word(const Address& to, Value target, const Element& element, Value first) const {
    for (int64_t j = 0; j < kNibblesOfWord; ++j) {
      to.store(target + j, element(first + j) * factor_of(j, kNibblesOfWord));
    }
  }

  template <class Element>
  void write_block(Builder& b, const Address& to, Value target, const Element& element, Value first,
                   Value k) const {
    for (int64_t byte = 0; byte < kBytesOfWord; ++byte) {
      const double scale = factor_of(byte, kBytesOfWord);
      b.vector_loop(b.i64(0), b.i64(kWords), [&](Value word) {
        const Value at = first + word * kBytesOfWord + byte;
        const Value value = element(ir::minimum(at, k - 1)) * scale;
        to.store(target + first + byte * kWords + word, select(at < k, value, 0));
      });
    }
  }
};

int64_t whole_blocks(int64_t k) { return (k + kBytesOfBlock - 1) / kBytesOfBlock * kBytesOfBlock; }

}  // namespace

Activation::Activation(Stream& stream, const TensorView& factor, WordKind kind, int64_t group)
    : depth_(kind == WordKind::kBytes ? whole_blocks(factor.sizes[1]) : factor.sizes[1]),
      bytes_(static_cast<uint64_t>(factor.sizes[0] * depth_) * sizeof(float)),
      sum_bytes_(static_cast<uint64_t>(factor.sizes[0] * (factor.sizes[1] / group)) *
                 sizeof(float)),
      workspace_(stream, bytes_ + sum_bytes_) {
  const int64_t m = factor.sizes[0], k = factor.sizes[1], groups = k / group;
  const WorkSplit split = split_work(m * groups, group);
  Arguments arguments;
  append(arguments, GRAFT_ACCESS_WRITE);
  arguments.read(factor);
  arguments.index(split.lines).index(split.per_item).index(groups);
  arguments.index(groups == 1 ? depth_ : group).index(k).index(depth_);
  arguments.index(factor.strides[0]).index(factor.strides[1]);
  launch_kernel(stream, ActivationKernel{kind, factor.dtype}, split.grid, arguments);
}

void Activation::append(Arguments& arguments, uint32_t access) const {
  arguments.address(workspace_.address(), bytes_, access);
  arguments.address(workspace_.address() + bytes_, sum_bytes_, access);
}

}  // namespace graft
