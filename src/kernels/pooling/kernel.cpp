// src/kernels/pooling/kernel.cpp: the kernels behind pooling.h that run over channels.
#include "kernels/pooling/kernel.h"

#include <limits>
#include <optional>

#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

struct Range {
  Value begin, end;
};

class PoolWriter {
 public:
  explicit PoolWriter(const PoolKernel& kernel)
      : kind_(kernel.kind),
        dtype_(kernel.dtype),
        b_(kernel.key()),
        type_(ir::compute_type(kernel.dtype)) {
    to_ = kind_ == PoolKernel::kMaxBackward ? b_.update(kernel.written) : b_.write(kernel.dtype);
    if (kind_ == PoolKernel::kMax) indices_ = b_.write(GRAFT_INT64);
    from_ = b_.read(kernel.dtype);
    if (kind_ == PoolKernel::kMaxBackward) {
      indices_ = b_.read(GRAFT_INT64);
      checker_.emplace(b_);
    }
    for (Value* value : {&lines_, &per_item_, &channels_}) *value = b_.index();
    for (Value* pair : {in_size_, out_size_, window_, stride_, padding_, dilation_}) {
      for (int d = 0; d < 2; ++d) pair[d] = b_.index();
    }
    for (Value& value : in_) value = b_.index();
    for (Value& value : out_) value = b_.index();
    divisor_ = b_.index();
    count_padding_ = b_.index();
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      switch (kind_) {
        case PoolKernel::kMax:
          return maximum(line);
        case PoolKernel::kMaxBackward:
          return max_backward(line);
        case PoolKernel::kAverage:
        case PoolKernel::kAdaptive:
          return average(line);
        default:
          return average_backward(line);
      }
    });
    return b_.finish();
  }

 private:
  Value zero() { return b_.i64(0); }
  bool adaptive() const {
    return kind_ == PoolKernel::kAdaptive || kind_ == PoolKernel::kAdaptiveBackward;
  }
  static Value divide_up(Value a, Value b) { return (a + b - 1) / b; }

  // Splits a line into image, pixel of the given size and block of channels.
  void pixel(Value line, const Value* size) {
    const Value blocks = (channels_ + (kPoolBlock - 1)) / kPoolBlock;
    block_ = line % blocks * kPoolBlock;
    width_ = ir::minimum(channels_ - block_, b_.i64(kPoolBlock));
    const Value rest = line / blocks, rows = rest / size[1];
    at_[1] = rest % size[1];
    at_[0] = rows % size[0];
    image_ = rows / size[0];
  }

  Lanes filled(ir::Type type, Value first) {
    const Lanes lanes(b_, type, kPoolBlock);
    b_.vector_loop(zero(), b_.i64(kPoolBlock), [&](Value i) { lanes.store(i, first); });
    return lanes;
  }

  template <class Body>
  void over(const Range& y, const Range& x, Body body) {
    b_.loop(y.begin, y.end,
            [&](Value i) { b_.loop(x.begin, x.end, [&](Value j) { body(i, j); }); });
  }

  Value source(Value k, int d) { return at_[d] * stride_[d] - padding_[d] + k * dilation_[d]; }
  Value inside(Value position, int d) { return (position >= 0) & (position < in_size_[d]); }

  void maximum(Value line) {
    pixel(line, out_size_);
    const Lanes best = filled(type_, lowest_of(b_, dtype_));
    const Lanes where = filled(ir::Type::kI64, b_.i64(-1));
    const Value base = image_ * in_[0] + block_ * in_[1];
    over({zero(), window_[0]}, {zero(), window_[1]}, [&](Value ky, Value kx) {
      const Value y = source(ky, 0), x = source(kx, 1);
      b_.if_(inside(y, 0) & inside(x, 1), [&] {
        const Value from = base + y * in_[2] + x * in_[3], position = y * in_size_[1] + x;
        b_.vector_loop(zero(), width_, [&](Value i) {
          const Value before = best.load(i), seen = where.load(i);
          const Value value = from_.load(from + i * in_[1]);
          // The first element of a window always counts.
          const Value takes = (value > before) | is_nan(value) | (seen < 0);
          best.store(i, select(takes, value, before));
          where.store(i, select(takes, position, seen));
        });
      });
    });
    const Value to = image_ * out_[0] + at_[0] * out_[2] + at_[1] * out_[3] + block_ * out_[1];
    b_.vector_loop(zero(), width_, [&](Value i) {
      to_.store(to + i * out_[1], best.load(i));
      indices_.store(to + i * out_[1], where.load(i));
    });
  }

  void max_backward(Value line) {
    const Value blocks = (channels_ + (kPoolBackwardBlock - 1)) / kPoolBackwardBlock;
    const Value block = line % blocks * kPoolBackwardBlock, image = line / blocks;
    const Value width = ir::minimum(channels_ - block, b_.i64(kPoolBackwardBlock));
    const Value to = image * in_[0] + block * in_[1];
    // Planes are dense: position p lies p inner strides into the plane.
    b_.loop(zero(), in_size_[0] * in_size_[1], [&](Value p) {
      b_.vector_loop(zero(), width, [&](Value i) {
        to_.store(to + i * in_[1] + p * in_[3], b_.constant(type_, 0));
      });
    });
    const Value from = image * out_[0] + block * out_[1];
    over({zero(), out_size_[0]}, {zero(), out_size_[1]}, [&](Value y, Value x) {
      const Value pixel = from + y * out_[2] + x * out_[3];
      each_largest(
          *checker_, zero(), width, in_size_[0] * in_size_[1],
          [&](Value i) { return indices_.load(pixel + i * out_[1]); },
          [&](Value i) { return from_.load(pixel + i * out_[1]); },
          [&](Value i, Value position, Value number) {
            const Value target = to + i * in_[1] + position * in_[3];
            to_.store(target, to_.load(target) + number);
          });
    });
  }

  // Rows (d 0) or columns (d 1) of the input under an output position.
  Range covered(Value position, int d) {
    if (adaptive()) {
      return {position * in_size_[d] / out_size_[d],
              divide_up((position + 1) * in_size_[d], out_size_[d])};
    }
    const Value begin = position * stride_[d] - padding_[d];
    return {ir::maximum(begin, zero()), ir::minimum(begin + window_[d], in_size_[d])};
  }

  // Output positions whose windows hold an input position.
  Range covering(Value position, int d) {
    if (adaptive()) {
      return {position * out_size_[d] / in_size_[d],
              divide_up((position + 1) * out_size_[d], in_size_[d])};
    }
    const Value last = position + padding_[d];
    return {divide_up(ir::maximum(last - window_[d] + 1, zero()), stride_[d]),
            ir::minimum(last / stride_[d] + 1, out_size_[d])};
  }

  Value elements(Value y, Value x) {
    const Value at[2] = {y, x};
    Value plain = b_.i64(1), padded = b_.i64(1);
    for (int d = 0; d < 2; ++d) {
      const Range range = covered(at[d], d);
      plain = plain * (range.end - range.begin);
      if (adaptive()) continue;
      const Value begin = at[d] * stride_[d] - padding_[d];
      padded = padded * (ir::minimum(begin + window_[d], in_size_[d] + padding_[d]) - begin);
    }
    if (adaptive()) return cast(type_, plain);
    const Value count = select(count_padding_ != 0, padded, plain);
    return cast(type_, select(divisor_ != 0, divisor_, count));
  }

  void average(Value line) {
    pixel(line, out_size_);
    const Lanes total = filled(type_, b_.constant(type_, 0));
    const Value base = image_ * in_[0] + block_ * in_[1];
    over(covered(at_[0], 0), covered(at_[1], 1), [&](Value y, Value x) {
      const Value from = base + y * in_[2] + x * in_[3];
      b_.vector_loop(zero(), width_, [&](Value i) {
        total.store(i, total.load(i) + from_.load(from + i * in_[1]));
      });
    });
    const Value divisor = elements(at_[0], at_[1]);
    const Value to = image_ * out_[0] + at_[0] * out_[2] + at_[1] * out_[3] + block_ * out_[1];
    b_.vector_loop(zero(), width_,
                   [&](Value i) { to_.store(to + i * out_[1], total.load(i) / divisor); });
  }

  void average_backward(Value line) {
    pixel(line, in_size_);
    const Lanes total = filled(type_, b_.constant(type_, 0));
    const Value base = image_ * out_[0] + block_ * out_[1];
    over(covering(at_[0], 0), covering(at_[1], 1), [&](Value y, Value x) {
      const Value from = base + y * out_[2] + x * out_[3], divisor = elements(y, x);
      b_.vector_loop(zero(), width_, [&](Value i) {
        total.store(i, total.load(i) + from_.load(from + i * out_[1]) / divisor);
      });
    });
    const Value to = image_ * in_[0] + at_[0] * in_[2] + at_[1] * in_[3] + block_ * in_[1];
    b_.vector_loop(zero(), width_, [&](Value i) { to_.store(to + i * in_[1], total.load(i)); });
  }

  const PoolKernel::Kind kind_;
  const graft_dtype dtype_;
  Builder b_;
  ir::Type type_;
  std::optional<IndexChecker> checker_;
  Address to_, from_, indices_;
  Value lines_, per_item_, channels_;
  Value in_size_[2], out_size_[2], window_[2], stride_[2], padding_[2], dilation_[2];
  Value in_[4], out_[4], divisor_, count_padding_;
  Value image_, block_, width_, at_[2];
};

}  // namespace

Value lowest_of(Builder& b, graft_dtype dtype) {
  const ir::Type type = ir::compute_type(dtype);
  if (ir::is_float(type)) return b.constant(type, -std::numeric_limits<double>::infinity());
  const auto bits = static_cast<int>(size_of(dtype)) * 8;
  return b.constant(type, ir::is_signed(type) ? -1 - (INT64_MAX >> (64 - bits)) : 0);
}

void each_largest(const IndexChecker& checker, Value begin, Value end, Value size,
                  const std::function<Value(Value)>& index, const std::function<Value(Value)>& from,
                  const PoolAdd& add) {
  const auto rare = [&](Value i) {
    const Value given = index(i), x = from(i);
    const Value position = checker.check(select(given == -1, 0, given), size, false);
    add(i, position, select(given < 0, 0, x));
  };
  checker.each(
      begin, end, size, index, [&](Value i, Value position) { add(i, position, from(i)); }, rare);
}

std::string PoolKernel::key() const {
  static const char* const kKinds[] = {
      "max", "max_backward", "average", "average_backward", "adaptive", "adaptive_backward"};
  return std::string("pool_") + kKinds[kind] + "_" + name_of(dtype) +
         (kind == kMaxBackward ? std::string("_") + name_of(written) : std::string());
}

ir::Kernel PoolKernel::build() const { return PoolWriter(*this).write(); }

}  // namespace graft
