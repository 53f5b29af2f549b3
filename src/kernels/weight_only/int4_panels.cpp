// src/kernels/weight_only/int4_panels.cpp: kernels that take a few rows times a weight of 4 bits.
#include "kernels/weight_only/int4_panels.h"

#include "kernels/launch/accumulators.h"
#include "kernels/launch/read_ahead.h"
#include "kernels/launch/work_split.h"
#include "kernels/weight_only/weight.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kPairsOfWord = kNibblesOfWord / 2;

}  // namespace

std::pair<Value, Value> Int4ScaleReader::load(Value group, Value row) const {
  if (layout == ScaleLayout::kBfloat16Pairs) {
    const Value both = cast(Type::kU32, scales.load(group * group_stride + row));
    const Value scale = bitcast(Type::kF32, both << 16);
    return {scale, bitcast(Type::kF32, both & 0xffff0000u) - scale * double{kNibbleBias}};
  }
  const int64_t stride = layout == ScaleLayout::kPairs ? 2 : 1;
  const Value scale = cast(Type::kF32, scales.load(group * group_stride + row * stride));
  if (!has_zeros()) return {scale, scale * -double{kNibbleBias}};
  const Value zero = cast(Type::kF32, zeros.load(group * zero_group_stride + row * stride));
  return {scale, zero - scale * double{kNibbleBias}};
}

namespace {

class PanelWriter {
 public:
  explicit PanelWriter(const Int4Decoding& kernel)
      : kernel_(kernel),
        b_(kernel.key(WorkMapping::kSpans)),
        to_(b_.write(kernel.output)),
        words_(b_.read(GRAFT_INT32)),
        factor_(b_.read(kernel.adds_integers() ? GRAFT_INT32 : GRAFT_FLOAT32)),
        sums_(b_.read(GRAFT_FLOAT32)),
        steps_(kernel.adds_integers() ? b_.read(GRAFT_FLOAT32) : sums_),
        scales_(b_, kernel) {
    for (Value* value : {&items_, &per_item_, &panels_, &depth_, &groups_, &words_of_group_,
                         &row_stride_, &column_stride_}) {
      *value = b_.index();
    }
  }

  ir::Kernel write() {
    each_line(b_, items_, per_item_, [&](Value item) { compute(item * kernel_.panels()); });
    return b_.finish();
  }

 private:
  size_t place(int64_t panel, int64_t row) const {
    return static_cast<size_t>(panel * kernel_.rows + row);
  }

  void compute(Value first) {
    const std::vector<Lanes> totals = arrays();
    Values panels, starts;
    for (int64_t p = 0; p < kernel_.panels(); ++p) {
      panels.push_back(ir::minimum(first + p, panels_ - 1));
      starts.push_back(panels.back() * (depth_ / kNibblesOfWord) * kWords);
    }
    b_.loop(b_.i64(0), groups_, [&](Value group) {
      const Value begin = group * words_of_group_, end = begin + words_of_group_;
      if (kernel_.adds_integers()) {
        scale(integers(starts, begin, end), totals, panels, group);
        return;
      }
      const std::vector<Lanes> parts = arrays();
      b_.loop(begin, end, [&](Value word) { add_word(parts, starts, word); });
      scale(parts, totals, panels, group);
    });
    for (int64_t p = 0; p < kernel_.panels(); ++p) {
      const Value column = panels[static_cast<size_t>(p)] * kWords;
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        b_.vector_loop(b_.i64(0), b_.i64(kWords), [&](Value i) {
          to_.store(row_stride_ * r + (column + i) * column_stride_, totals[place(p, r)].load(i));
        });
      }
    }
  }

  std::vector<Lanes> arrays() { return zero_lanes(b_, kernel_.panels() * kernel_.rows, kWords); }

  // The integers of a word of each row of the panels, in two chains of sums.
  void add_word(const std::vector<Lanes>& parts, const Values& starts, Value word) {
    for (int64_t r = 0; r < kernel_.rows; ++r) {
      Values factors;
      for (int64_t j = 0; j < kNibblesOfWord; ++j) {
        factors.push_back(factor_.load(depth_ * r + word * kNibblesOfWord + j));
      }
      for (int64_t p = 0; p < kernel_.panels(); ++p) {
        const Lanes& part = parts[place(p, r)];
        const Value start = starts[static_cast<size_t>(p)] + word * kWords;
        b_.vector_loop(b_.i64(0), b_.i64(kWords), [&](Value i) {
          const Value bits = cast(Type::kU32, words_.load(start + i));
          Value even = part.load(i) + factors[0] * nibble(bits, 0);
          Value odd = factors[1] * nibble(bits, 1);
          for (uint32_t j = 2; j < kNibblesOfWord; j += 2) {
            even = even + factors[j] * nibble(bits, j);
            odd = odd + factors[j + 1] * nibble(bits, j + 1);
          }
          part.store(i, even + odd);
        });
      }
    }
  }

  // The sums of a group's integers. Those of odd elements are 2^4 too large until their end, which
  // spares shifts: below 15 * 2^19 an element.
  std::vector<Lanes> integers(const Values& starts, Value begin, Value end) {
    const size_t count = static_cast<size_t>(kernel_.panels() * kernel_.rows);
    std::vector<Variable> even = zero_pairs(b_, count), odd = zero_pairs(b_, count);
    b_.loop(begin, end, [&](Value word) { add_pairs(even, odd, starts, word); });
    for (size_t i = 0; i < count; ++i) even[i] = even[i].get() + (odd[i].get() >> all(4));
    return lanes_of(b_, even);
  }

  Value all(int64_t number) { return in_all(b_, number); }

  void add_pairs(std::vector<Variable>& even, std::vector<Variable>& odd, const Values& starts,
                 Value word) {
    Values factors;
    for (int64_t r = 0; r < kernel_.rows; ++r) {
      for (int64_t j = 0; j < kPairsOfWord; ++j) {
        const Value pair = (depth_ * r / kNibblesOfWord + word) * kPairsOfWord + j;
        factors.push_back(splat(Type::kI32x8, factor_.load(pair)));
      }
    }
    const Value at = word * kWords, length = depth_ / kNibblesOfWord * kWords;
    const int64_t panels = kernel_.panels(), by = kBytesAhead / kBytesOfWord / panels;
    const Value later = soon(at, by, length, length * panels);
    for (int64_t p = 0; p < panels; ++p) {
      const Value start = starts[static_cast<size_t>(p)] + at;
      words_.prefetch(starts[static_cast<size_t>(p)] + later);
      const Value low = words_.load_vector(Type::kI32x8, start), high = low >> all(8);
      const Value first = low & all(0x000f000f), second = low & all(0x00f000f0);
      const Value third = high & all(0x000f000f), fourth = high & all(0x00f000f0);
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const size_t sum = place(p, r);
        const Value* const factor = &factors[static_cast<size_t>(r * kPairsOfWord)];
        even[sum] = pair_dot(third, factor[2], pair_dot(first, factor[0], even[sum].get()));
        odd[sum] = pair_dot(fourth, factor[3], pair_dot(second, factor[1], odd[sum].get()));
      }
    }
  }

  // As it lies in the word, 2^4j too large, but the last.
  static Value nibble(Value bits, uint32_t j) {
    const bool last = j + 1 == kNibblesOfWord;
    const Value masked = last ? bits >> 28 : bits & (15u << 4 * j);
    return cast(Type::kF32, cast(Type::kI32, masked));
  }

  void scale(const std::vector<Lanes>& parts, const std::vector<Lanes>& totals,
             const Values& panels, Value group) {
    for (int64_t r = 0; r < kernel_.rows; ++r) {
      const Value line = groups_ * r + group, sum = sums_.load(line);
      const auto in_numbers = [&](Value part) {
        return kernel_.adds_integers() ? cast(Type::kF32, part) * steps_.load(line) : part;
      };
      for (int64_t p = 0; p < kernel_.panels(); ++p) {
        const size_t at = place(p, r);
        const Value row = panels[static_cast<size_t>(p)] * kWords;
        b_.vector_loop(b_.i64(0), b_.i64(kWords), [&](Value i) {
          const auto [by, shift] = scales_.load(group, row + i);
          totals[at].store(i,
                           totals[at].load(i) + by * in_numbers(parts[at].load(i)) + shift * sum);
        });
      }
    }
  }

  const Int4Decoding kernel_;
  Builder b_;
  Address to_, words_, factor_, sums_, steps_;
  Int4ScaleReader scales_;
  Value items_, per_item_, panels_, depth_, groups_, words_of_group_, row_stride_, column_stride_;
};

}  // namespace

ir::Kernel write_int4_panels(const Int4Decoding& kernel) { return PanelWriter(kernel).write(); }

}  // namespace graft
