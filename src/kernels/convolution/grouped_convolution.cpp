// src/kernels/convolution/grouped_convolution.cpp: the sums over patches taken directly, for
// channels in small groups.
#include "kernels/convolution/grouped_convolution.h"

#include "kernels/convolution/spatial.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kRow = 128;  // positions of a row that an item holds
constexpr int64_t kSums = 64;  // sums that an element of the factor is folded from

struct SumKernel {
  bool factor;  // is written, or output
  bool biased;
  bool dense_input, dense_output;  // neighbours of a row are neighbours in memory
  graft_dtype dtype;

  std::string key() const {
    return std::string(factor ? "patch_factor_" : "patch_sums_") + (biased ? "bias_" : "") +
           (dense_input ? "i" : "") + (dense_output ? "o_" : "_") + name_of(dtype);
  }
};

class SumWriter {
 public:
  explicit SumWriter(const SumKernel& kernel)
      : kernel_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.dtype)) {
    to_ = b_.write(kernel.dtype);
    first_ = b_.read(kernel.dtype);
    second_ = b_.read(kernel.dtype);
    bias_ = kernel.biased ? b_.read(kernel.dtype) : first_;
    b_.indices({&lines_, &per_item_, &images_, &channels_, &outs_, &groups_, &factor_step_,
                &bias_stride_});
    b_.indices({input_, taps_, output_, step_, start_, reach_}, 3);
    b_.indices({input_stride_, factor_stride_, output_stride_}, 5);
    across_input_ = kernel.dense_input ? b_.i64(1) : step_[2] * input_stride_[4];
    across_output_ = kernel.dense_output ? b_.i64(1) : output_stride_[4];
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_,
              [&](Value line) { kernel_.factor ? element(line) : row(line); });
    return b_.finish();
  }

 private:
  static Value take(Value& rest, Value size) {
    const Value index = rest % size;
    rest = rest / size;
    return index;
  }
  // The positions x of a row that tap meets inside of the input: from first to last, without it.
  struct Range {
    Value first, last;
  };
  Range range(Value shift) {
    const Value before = -shift, most = input_[2] - 1 - shift, zero = b_.i64(0);
    const Value first = select(before < 0, zero, (before + step_[2] - 1) / step_[2]);
    return {first, select(most < 0, zero, most / step_[2] + 1)};
  }
  // body(offset of the input's row) where position z, y meets the input through the tap.
  template <class Body>
  void if_inside(const Value* position, const Value* tap, Body body) {
    Value inside = b_.boolean(true), offset = b_.i64(0);
    for (int d = 0; d < 2; ++d) {
      const Value at = position[d] * step_[d] + start_[d] + tap[d] * reach_[d];
      inside = inside & (at >= 0) & (at < input_[d]);
      offset = offset + at * input_stride_[2 + d];
    }
    b_.if_(inside, [&] { body(offset); });
  }
  // body(z and y) for all within sizes.
  template <class Body>
  void each_row(const Value* sizes, Body body) {
    b_.loop(b_.i64(0), sizes[0], [&](Value z) {
      b_.loop(b_.i64(0), sizes[1], [&](Value y) {
        const Value at[2] = {z, y};
        body(at);
      });
    });
  }

  void row(Value line) {
    const Value pieces = (output_[2] + (kRow - 1)) / kRow;
    Value rest = line;
    const Value begin = take(rest, pieces) * kRow, y = take(rest, output_[1]);
    const Value position[2] = {take(rest, output_[0]), y};
    const Value out = take(rest, outs_), group = take(rest, groups_), image = rest;
    const Value width = ir::minimum(output_[2] - begin, b_.i64(kRow));
    const Lanes sums(b_, type_, kRow);
    b_.vector_loop(b_.i64(0), width, [&](Value i) { sums.store(i, b_.constant(type_, 0)); });
    b_.loop(b_.i64(0), channels_, [&](Value c) {
      const Value channel = image * input_stride_[0] + (group * channels_ + c) * input_stride_[1];
      const Value weight = group * factor_step_ + out * factor_stride_[0] + c * factor_stride_[1];
      each_row(taps_, [&](const Value* tap) {
        if_inside(position, tap, [&](Value offset) {
          const Value weights = weight + tap[0] * factor_stride_[2] + tap[1] * factor_stride_[3];
          add_row(sums, channel + offset, weights, begin, width);
        });
      });
    });
    const Value whole = group * outs_ + out;
    const Value to = image * output_stride_[0] + whole * output_stride_[1] +
                     position[0] * output_stride_[2] + y * output_stride_[3] +
                     begin * output_stride_[4];
    const Value added =
        kernel_.biased ? cast(type_, bias_.load(whole * bias_stride_)) : b_.constant(type_, 0);
    b_.vector_loop(b_.i64(0), width, [&](Value i) {
      to_.store(to + i * across_output_, kernel_.biased ? sums.load(i) + added : sums.load(i));
    });
  }

  void add_row(const Lanes& sums, Value source, Value weights, Value begin, Value width) {
    b_.loop(b_.i64(0), taps_[2], [&](Value x) {
      const Value shift = start_[2] + x * reach_[2];
      const Range met = range(shift);
      const Value first = ir::maximum(met.first - begin, b_.i64(0));
      const Value last = ir::maximum(ir::minimum(met.last - begin, width), first);
      const Value from = source + (begin * step_[2] + shift) * input_stride_[4];
      const Value factor = cast(type_, second_.load(weights + x * factor_stride_[4]));
      b_.vector_loop(first, last, [&](Value i) {
        const Value value = cast(type_, first_.load(from + i * across_input_));
        sums.store(i, sums.load(i) + factor * value);
      });
    });
  }

  void element(Value line) {
    Value rest = line;
    const Value x = take(rest, taps_[2]), y = take(rest, taps_[1]);
    const Value tap[2] = {take(rest, taps_[0]), y};
    const Value c = take(rest, channels_), out = take(rest, outs_), group = rest;
    const Value shift = start_[2] + x * reach_[2];
    const Range met = range(shift);
    const Value last = ir::minimum(met.last, output_[2]);
    const Lanes sums(b_, type_, kSums);
    b_.vector_loop(b_.i64(0), b_.i64(kSums),
                   [&](Value i) { sums.store(i, b_.constant(type_, 0)); });
    b_.loop(b_.i64(0), images_, [&](Value n) {
      const Value image = n * input_stride_[0] + (group * channels_ + c) * input_stride_[1];
      const Value results = n * output_stride_[0] + (group * outs_ + out) * output_stride_[1];
      each_row(output_, [&](const Value* position) {
        if_inside(position, tap, [&](Value offset) {
          const Value source = image + offset + shift * input_stride_[4];
          const Value gradient =
              results + position[0] * output_stride_[2] + position[1] * output_stride_[3];
          add_products(sums, source, gradient, met.first, last);
        });
      });
    });
    const Variable sum(b_.constant(type_, 0));
    b_.loop(b_.i64(0), b_.i64(kSums), [&](Value i) { sum = sum.get() + sums.load(i); });
    const Value to = group * factor_step_ + out * factor_stride_[0] + c * factor_stride_[1] +
                     tap[0] * factor_stride_[2] + y * factor_stride_[3] + x * factor_stride_[4];
    to_.store(to, sum.get());
  }

  void add_products(const Lanes& sums, Value source, Value gradient, Value first, Value last) {
    const auto piece = [&](Value begin) {
      const Value from = source + begin * across_input_, with = gradient + begin * across_output_;
      b_.vector_loop(b_.i64(0), ir::minimum(last - begin, b_.i64(kSums)), [&](Value i) {
        const Value value = cast(type_, first_.load(from + i * across_input_));
        const Value other = cast(type_, second_.load(with + i * across_output_));
        sums.store(i, sums.load(i) + value * other);
      });
    };
    b_.loop(first, last, piece, b_.i64(kSums));
  }

  const SumKernel kernel_;
  Builder b_;
  const ir::Type type_;
  Address to_, first_, second_, bias_;  // first_: the input
  Value lines_, per_item_, images_, channels_, outs_, groups_, factor_step_, bias_stride_;
  Value input_[3], taps_[3], output_[3], step_[3], start_[3], reach_[3];
  Value input_stride_[5], factor_stride_[5], output_stride_[5];
  Value across_input_, across_output_;
};

// All groups' factors, as the memory that they lie in.
void append_factor(Arguments& arguments, const PatchProduct& product, uint32_t access) {
  const auto size = static_cast<int64_t>(size_of(product.factor.dtype));
  const int64_t others = (product.groups - 1) * product.factor_step * size;
  const uint64_t bytes = extent_bytes(product.factor) + static_cast<uint64_t>(others);
  arguments.address(product.factor.address, bytes, access);
}

void launch(Stream& stream, const PatchProduct& product, const SumKernel& kernel, int64_t lines,
            int64_t elements_per_line) {
  const WorkSplit split = split_work(lines, elements_per_line);
  Arguments arguments;
  if (kernel.factor) {
    append_factor(arguments, product, GRAFT_ACCESS_WRITE);
    arguments.read(product.input).read(product.output);
  } else {
    arguments.write(product.output).read(product.input);
    append_factor(arguments, product, GRAFT_ACCESS_READ);
    if (kernel.biased) arguments.read(*product.bias);
  }
  arguments.indices({split.lines, split.per_item, product.input.sizes[0], product.channels(),
                     product.outs(), product.groups, product.factor_step,
                     kernel.biased ? product.bias->strides[0] : 0});
  append_spatial(arguments, {&product.input, &product.factor, &product.output},
                 {product.grid.step, product.grid.start, product.grid.reach});
  const auto make = [&] { return SumWriter(kernel).write(); };
  launch_kernel(stream, kernel.key(), split.grid, arguments, make);
}

SumKernel kernel_of(const PatchProduct& product, bool factor) {
  return {factor, !factor && product.bias != nullptr,
          product.grid.step[2] * product.input.strides[4] == 1, product.output.strides[4] == 1,
          product.input.dtype};
}

}  // namespace

void patch_sums(Stream& stream, const PatchProduct& product) {
  const int64_t row = product.output.sizes[4], pieces = (row + kRow - 1) / kRow;
  const int64_t lines = product.output.count() / row * pieces;
  launch(stream, product, kernel_of(product, false), lines,
         std::min(row, kRow) * product.channels() * product.taps());
}

void patch_sums_factor(Stream& stream, const PatchProduct& product) {
  launch(stream, product, kernel_of(product, true), product.groups * product.factor.count(),
         product.input.sizes[0] * product.positions());
}

}  // namespace graft
