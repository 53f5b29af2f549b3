// src/kernels/weight_only/int8_decoding.cpp: a few rows times a weight of int8.
#include "kernels/weight_only/int8_decoding.h"

#include <string>

#include "kernels/launch/accumulators.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/group_fold.h"
#include "kernels/launch/read_ahead.h"
#include "kernels/launch/work_split.h"
#include "kernels/weight_only/decoding_factor.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// What a kernel is made for: rows of the activation, lines of the weight beside one another.
struct Int8Decoding {
  graft_dtype output;
  graft_dtype factor;  // as the kernel reads it; int16: IntegerActivation
  graft_dtype scales;
  graft_dtype zeros;  // REQUIRES asymmetric
  bool asymmetric;
  bool tail;  // the last block of a line is not whole
  int64_t rows;

  bool adds_integers() const { return factor == GRAFT_INT16; }

  // Sums of floats have to stay in 16 vector registers, with the masks and the numbers that they
  // meet, and are too slow one by one. Those of integers are not: memory is read fastest in order.
  int64_t lines() const { return adds_integers() || rows > 2 ? 1 : 4 / rows; }

  std::string key(WorkMapping deal) const {
    std::string key = "weight_only_int8_" + std::to_string(rows) + (tail ? "_tail_" : "_") +
                      name_of(output) + "_" + name_of(factor) + "_" + name_of(scales);
    if (asymmetric) key += std::string("_") + name_of(zeros);
    return key + suffix_of(deal);
  }
};

// The parameters that both classes of devices take after the factors.
struct ScaleReader {
  Address scales, zeros;
  bool asymmetric = false;
  Value line_stride, group_stride, zero_line_stride, zero_group_stride;

  ScaleReader(Builder& b, const Int8Decoding& kernel)
      : scales(b.read(kernel.scales)),
        zeros(kernel.asymmetric ? b.read(kernel.zeros) : scales),
        asymmetric(kernel.asymmetric) {
    for (Value* value : {&line_stride, &group_stride}) *value = b.index();
    if (!asymmetric) return;
    for (Value* value : {&zero_line_stride, &zero_group_stride}) *value = b.index();
  }
  Value scale(Value line, Value group) const {
    return cast(Type::kF32, scales.load(line * line_stride + group * group_stride));
  }
  // The zero point more `bias`.
  Value zero(Builder& b, Value line, Value group, double bias) const {
    if (!asymmetric) return b.f32(bias);
    const Value at = line * zero_line_stride + group * zero_group_stride;
    return cast(Type::kF32, zeros.load(at)) + bias;
  }
};

// The bytes of a word, kByteBias larger so that none has a sign; the second and third are left
// where they are, 2^8 and 2^16 too large.
ir::Values bytes_of(Value word) {
  const Value biased = cast(Type::kU32, word) ^ 0x80808080u;
  ir::Values bytes;
  for (uint32_t byte = 0; byte < kBytesOfWord; ++byte) {
    const bool last = byte + 1 == kBytesOfWord;
    const Value masked = last ? biased >> 24 : biased & (0xffu << 8 * byte);
    bytes.push_back(cast(Type::kF32, cast(Type::kI32, masked)));
  }
  return bytes;
}

class LineWriter {
 public:
  explicit LineWriter(const Int8Decoding& kernel)
      : kernel_(kernel),
        b_(kernel.key(WorkMapping::kSpans)),
        to_(b_.write(kernel.output)),
        words_(b_.read(GRAFT_INT32)),
        factor_(b_.read(kernel.adds_integers() ? GRAFT_INT32 : GRAFT_FLOAT32)),
        sums_(b_.read(GRAFT_FLOAT32)),
        steps_(kernel.adds_integers() ? b_.read(GRAFT_FLOAT32) : sums_),
        scales_(b_, kernel) {
    for (Value* value : {&items_, &per_item_, &n_, &words_of_line_, &depth_, &groups_, &blocks_,
                         &tail_, &groups_of_scale_, &row_stride_, &column_stride_}) {
      *value = b_.index();
    }
  }

  ir::Kernel write() {
    each_line(b_, items_, per_item_, [&](Value item) { compute(item * kernel_.lines()); });
    return b_.finish();
  }

 private:
  size_t place(int64_t line, int64_t row) const {
    return static_cast<size_t>(line * kernel_.rows + row);
  }

  void compute(Value first) {
    std::vector<Lanes> totals = arrays();
    std::vector<Variable> shifts;  // what the biases and zero points add to each sum
    ir::Values lines, starts;
    for (int64_t l = 0; l < kernel_.lines(); ++l) {
      lines.push_back(ir::minimum(first + l, n_ - 1));
      starts.push_back(lines.back() * words_of_line_);
      for (int64_t r = 0; r < kernel_.rows; ++r) shifts.emplace_back(b_.f32(0));
    }
    b_.loop(b_.i64(0), groups_, [&](Value group) {
      const Value begin = group * blocks_;
      if (kernel_.adds_integers()) {
        const Value end = ir::minimum(begin + blocks_, depth_ / kBytesOfBlock);
        scale(integers(starts, begin, end), totals, shifts, lines, group);
        return;
      }
      const std::vector<Lanes> parts = arrays();
      b_.loop(begin, begin + blocks_, [&](Value block) { add_block(parts, starts, block, {}); });
      if (kernel_.tail) add_tail(parts, starts, begin + blocks_);
      scale(parts, totals, shifts, lines, group);
    });
    for (int64_t l = 0; l < kernel_.lines(); ++l) {
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const Value sum = sum_of_lanes(b_, totals[place(l, r)]) - shifts[place(l, r)].get();
        to_.store(row_stride_ * r + lines[static_cast<size_t>(l)] * column_stride_, sum);
      }
    }
  }

  std::vector<Lanes> arrays() { return zero_lanes(b_, kernel_.lines() * kernel_.rows, kWords); }

  // The sums of the blocks' integers.
  std::vector<Lanes> integers(const ir::Values& starts, Value begin, Value end) {
    const std::vector<Variable> sums = zero_pairs(b_, kernel_.lines() * kernel_.rows);
    b_.loop(begin, end, [&](Value block) { add_pairs(sums, starts, block); });
    return lanes_of(b_, sums);
  }

  void add_pairs(const std::vector<Variable>& sums, const ir::Values& starts, Value block) {
    const auto all = [&](uint32_t number) { return in_all(b_, number); };
    ir::Values factors;
    for (int64_t r = 0; r < kernel_.rows; ++r) {
      for (int64_t j = 0; j < 2; ++j) {
        const Value at = (depth_ * r + block * kBytesOfBlock) / 2 + j * kWords;
        factors.push_back(factor_.load_vector(Type::kI32x8, at));
      }
    }
    for (int64_t l = 0; l < kernel_.lines(); ++l) {
      const Value start = starts[static_cast<size_t>(l)] + block * kWords;
      words_.prefetch(start + kBytesAhead / kBytesOfWord);
      const Value bits = words_.load_vector(Type::kI32x8, start) ^ all(0x80808080u);
      const Value even = bits & all(0x00ff00ff), odd = (bits >> all(8)) & all(0x00ff00ff);
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const Variable& sum = sums[place(l, r)];
        const Value* const by = &factors[static_cast<size_t>(2 * r)];
        sum = pair_dot(odd, by[1], pair_dot(even, by[0], sum.get()));
      }
    }
  }

  // end: words of the block, all where it is not given.
  void add_block(const std::vector<Lanes>& parts, const ir::Values& starts, Value block,
                 Value end) {
    const Value last = end.id() == ir::kNoId ? b_.i64(kWords) : end;
    const bool chains_apart = kernel_.lines() == 1;  // else there are sums enough to be under way
    for (int64_t l = 0; l < kernel_.lines(); ++l) {
      const Value start = starts[static_cast<size_t>(l)] + block * kWords;
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const Lanes& part = parts[place(l, r)];
        const Value from = depth_ * r + block * kBytesOfBlock;
        b_.vector_loop(b_.i64(0), last, [&](Value i) {
          const ir::Values bytes = bytes_of(words_.load(start + i));
          Value sums[] = {part.load(i), b_.f32(0)};
          for (size_t byte = 0; byte < bytes.size(); ++byte) {
            Value& sum = sums[chains_apart ? byte % 2 : 0];
            const Value at = from + static_cast<int64_t>(byte) * kWords + i;
            sum = sum + factor_.load(at) * bytes[byte];
          }
          part.store(i, chains_apart ? sums[0] + sums[1] : sums[0]);
        });
      }
    }
  }

  // Summed on its own: the sums of whole blocks stay in registers.
  void add_tail(const std::vector<Lanes>& parts, const ir::Values& starts, Value block) {
    const std::vector<Lanes> rest = arrays();
    add_block(rest, starts, block, tail_);
    for (size_t i = 0; i < parts.size(); ++i) {
      b_.vector_loop(b_.i64(0), b_.i64(kWords), [&](Value lane) {
        parts[i].store(lane, parts[i].load(lane) + rest[i].load(lane));
      });
    }
  }

  void scale(const std::vector<Lanes>& parts, const std::vector<Lanes>& totals,
             const std::vector<Variable>& shifts, const ir::Values& lines, Value group) {
    for (int64_t l = 0; l < kernel_.lines(); ++l) {
      const Value line = lines[static_cast<size_t>(l)], of_scale = group / groups_of_scale_;
      const Value by = scales_.scale(line, of_scale);
      const Value zero = scales_.zero(b_, line, of_scale, kByteBias) * by;
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const size_t at = place(l, r);
        const auto number = [&](Value i) {
          const Value part = parts[at].load(i);
          if (!kernel_.adds_integers()) return part;
          return cast(Type::kF32, part) * steps_.load(groups_ * r + group);
        };
        b_.vector_loop(b_.i64(0), b_.i64(kWords),
                       [&](Value i) { totals[at].store(i, totals[at].load(i) + by * number(i)); });
        shifts[at] = shifts[at].get() + zero * sums_.load(groups_ * r + group);
      }
    }
  }

  const Int8Decoding kernel_;
  Builder b_;
  Address to_, words_, factor_, sums_, steps_;
  ScaleReader scales_;
  Value items_, per_item_, n_, words_of_line_, depth_, groups_, blocks_, tail_, groups_of_scale_;
  Value row_stride_, column_stride_;
};

// A group of kLanes work-items sums a line, each every kLanes-th word.
ir::Kernel write_group_kernel(const Int8Decoding& kernel, WorkMapping deal) {
  Builder b(kernel.key(deal), ir::Family::kGpuLike);
  const Address to = b.write(kernel.output), words = b.read(GRAFT_INT32);
  const Address factor = b.read(kernel.factor);
  const ScaleReader scales(b, kernel);
  Value words_of_line, count, words_of_group, row, depth, row_stride, column_stride;
  for (Value* value :
       {&words_of_line, &count, &words_of_group, &row, &depth, &row_stride, &column_stride}) {
    *value = b.index();
  }
  GroupFold fold(b, std::vector<Type>(static_cast<size_t>(kernel.rows), Type::kF32), deal);
  const Value line = b.item() / kLanes, start = line * words_of_line;
  std::vector<Variable> sums;
  for (int64_t r = 0; r < kernel.rows; ++r) sums.emplace_back(b.f32(0));
  const auto step = [&](Value word) {
    const Value bits = words.load(start + word), group = word / words_of_group;
    const Value by = scales.scale(line, group), zero = scales.zero(b, line, group, 0.0);
    for (int64_t byte = 0; byte < kBytesOfWord; ++byte) {
      const Value integer = (bits << (24 - 8 * byte)) >> 24;
      const Value number = (cast(Type::kF32, integer) - zero) * by;
      const Value at = (word * kBytesOfWord + byte) * depth;
      for (int64_t r = 0; r < kernel.rows; ++r) {
        const Variable& sum = sums[static_cast<size_t>(r)];
        sum = sum.get() + factor.load(row * r + at) * number;
      }
    }
  };
  b.loop(fold.lane(), count, step, b.i64(kLanes));
  const ir::Values totals =
      fold.fold({sums.begin(), sums.end()}, [](const ir::Values& x, const ir::Values& y) {
        ir::Values both;
        for (size_t i = 0; i < x.size(); ++i) both.push_back(x[i] + y[i]);
        return both;
      });
  b.if_(fold.lane() == 0, [&] {
    for (int64_t r = 0; r < kernel.rows; ++r) {
      to.store(row_stride * r + line * column_stride, totals[static_cast<size_t>(r)]);
    }
  });
  return b.finish();
}

void append_scales(Arguments& arguments, const WeightScales& scales) {
  arguments.read(scales.scales);
  if (scales.zeros != nullptr) arguments.read(*scales.zeros);
  arguments.index(scales.scales.strides[1]).index(scales.scales.strides[0]);
  if (scales.zeros == nullptr) return;
  arguments.index(scales.zeros->strides[1]).index(scales.zeros->strides[0]);
}

}  // namespace

bool fits_int8_decoding(const TensorView& weight, const WeightScales& scales) {
  const bool whole = weight.sizes[1] % kBytesOfWord == 0 && weight.strides[0] % kBytesOfWord == 0 &&
                     weight.address % kBytesOfWord == 0;
  return whole && weight.strides[1] == 1 && weight.strides[0] >= 0 &&
         (scales.groups() == 1 || scales.group % kBytesOfBlock == 0);
}

void int8_decoding(Stream& stream, const TensorView& output, const TensorView& a,
                   const TensorView& weight, const WeightScales& scales) {
  const int64_t n = weight.sizes[0], k = weight.sizes[1];
  const bool asymmetric = scales.zeros != nullptr;
  Int8Decoding kernel{
      output.dtype, a.dtype, scales.scales.dtype, asymmetric ? scales.zeros->dtype : GRAFT_FLOAT32,
      asymmetric,   false,   output.sizes[0]};
  const int64_t words_of_line = weight.strides[0] / kBytesOfWord;
  Arguments arguments;
  arguments.write(output).read(weight);
  const WorkMapping deal = deal_of_lines(stream.device());
  if (deal != WorkMapping::kSpans) {
    arguments.read(a);
    append_scales(arguments, scales);
    arguments.index(words_of_line).index(k / kBytesOfWord).index(scales.group / kBytesOfWord);
    arguments.index(a.strides[0]).index(a.strides[1]);
    arguments.index(output.strides[0]).index(output.strides[1]);
    const auto make = [&] { return write_group_kernel(kernel, deal); };
    return launch_kernel(stream, kernel.key(deal), n, arguments, make, kLanes);
  }
  kernel.tail = k % kBytesOfBlock != 0;
  const DecodingFactor factor(stream, a, WordKind::kBytes, scales);
  kernel.factor = factor.dtype();
  factor.append(arguments);
  append_scales(arguments, scales);
  const int64_t lines = kernel.lines(), groups = factor.groups();
  const WorkSplit split = split_work((n + lines - 1) / lines, lines * k);
  arguments.index(split.lines).index(split.per_item).index(n).index(words_of_line);
  arguments.index(factor.depth()).index(groups).index(factor.group() / kBytesOfBlock);
  arguments.index(k % kBytesOfBlock / kBytesOfWord);
  arguments.index((groups + scales.groups() - 1) / scales.groups());
  arguments.index(output.strides[0]).index(output.strides[1]);
  launch_kernel(stream, kernel.key(deal), split.grid, arguments,
                [&] { return LineWriter(kernel).write(); });
}

}  // namespace graft
