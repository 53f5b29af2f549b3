// src/kernels/pooling/plane_kernel.cpp: the kernels behind pooling.h for contiguous planes.
#include "kernels/pooling/plane_kernel.h"

#include "codegen/ir/builder.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/pooling/kernel.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int kPlaneLanes = 64;

class PlaneWriter {
 public:
  explicit PlaneWriter(const PlanePoolKernel& kernel)
      : kind_(kernel.kind),
        clipped_(kernel.clipped),
        adaptive_(kind_ == PlanePoolKernel::kAdaptive ||
                  kind_ == PlanePoolKernel::kAdaptiveBackward),
        b_(kernel.key()),
        type_(ir::compute_type(kernel.dtype)) {
    to_ = b_.write(kernel.written);
    if (kind_ == PlanePoolKernel::kMax) indices_ = b_.write(GRAFT_INT64);
    from_ = b_.read(kernel.dtype);
    for (Value* value : {&rows_, &rows_per_item_, &channels_}) *value = b_.index();
    for (Value* value : {&image_stride_, &channel_stride_, &divisor_}) *value = b_.index();
    for (Value* pair : {size_, read_size_, read_stride_, window_, stride_, padding_, dilation_}) {
      for (int d = 0; d < 2; ++d) pair[d] = b_.index32();
    }
    count_padding_ = b_.index32();
  }

  ir::Kernel write() {
    const Value height = cast(Type::kI64, size_[0]), row = b_.item() * rows_per_item_;
    const Value plane = row / height;
    first_row_ = narrow(row - plane * height);
    base_ = plane / channels_ * image_stride_ + plane % channels_ * channel_stride_;
    for (int d = 0; d < 2; ++d) {
      inverse_size_[d] = 1.0 / cast(Type::kF32, size_[d]);
      inverse_stride_[d] = 1.0 / cast(Type::kF32, stride_[d]);
      inverse_read_[d] = 1.0 / cast(Type::kF32, read_size_[d]);
    }
    count_ = narrow(ir::minimum(rows_ - row, rows_per_item_)) * size_[1];
    const Value to = row * cast(Type::kI64, size_[1]);
    b_.loop(
        number(0), count_,
        [&](Value first) {
          target_ = to + cast(Type::kI64, first);
          width_ = ir::minimum(count_ - first, number(kPlaneLanes));
          place(first);
          if (kind_ == PlanePoolKernel::kMax) return maximum();
          average();
        },
        number(kPlaneLanes));
    return b_.finish();
  }

 private:
  static Value narrow(Value value) { return cast(Type::kI32, value); }
  Value number(int value) { return b_.constant(Type::kI32, value); }
  // a / b for 0 <= a < 2^21, given 1 / b: a + 1/2 is half a step from where the quotient changes.
  static Value quotient(Value a, Value inverse) {
    return narrow((cast(Type::kF32, a) + 0.5) * inverse);
  }
  // Whether 0 <= a < b, in one comparison.
  static Value within(Value a, Value b) { return bitcast(Type::kU32, a) < bitcast(Type::kU32, b); }
  Value load(Value offset) { return from_.load(base_ + cast(Type::kI64, offset)); }

  template <class Body>
  void each_lane(Body body) {
    b_.vector_loop(number(0), number(kPlaneLanes), body);
  }
  template <class Body>
  void each_written(Body body) {
    b_.vector_loop(number(0), width_, [&](Value i) { body(i, target_ + cast(Type::kI64, i)); });
  }

  // For each lane the first element of its window (the last window over it, or the first one when
  // adaptive, if backward): where it lies in its plane and in memory. Lanes past the end repeat the
  // last one.
  void place(Value first) {
    each_lane([&](Value i) {
      const Value o = ir::minimum(first + i, count_ - 1);
      const Value down = quotient(o, inverse_size_[1]), row = down + first_row_;
      const Value plane = quotient(row, inverse_size_[0]);
      const Value position[2] = {row - plane * size_[0], o - down * size_[1]};
      Value offset = plane * narrow(channel_stride_);
      for (int d = 0; d < 2; ++d) {
        Value at = position[d] * stride_[d] - padding_[d];
        if (kind_ == PlanePoolKernel::kAverageBackward) {
          const Value padded = position[d] + padding_[d];
          at = quotient(padded, inverse_stride_[d]);
          reach_[d].store(i, padded - at * stride_[d]);
        }
        if (adaptive_) {
          at = quotient(position[d] * read_size_[d], inverse_size_[d]);
          const Value last = (position[d] + 1) * read_size_[d] - 1;
          reach_[d].store(i, quotient(last, inverse_size_[d]) - at);
        }
        offset = offset + at * read_stride_[d];
        at_[d].store(i, at);
      }
      offset_.store(i, offset);
    });
  }

  Value tap_inside(Value i, const Value* tap) {
    return within(at_[0].load(i) + tap[0], read_size_[0]) &
           within(at_[1].load(i) + tap[1], read_size_[1]);
  }

  // body(tap: rows and columns from the window's first element, the same in memory)
  template <class Body>
  void each_tap(Body body) {
    b_.loop(number(0), window_[0], [&](Value ky) {
      b_.loop(number(0), window_[1], [&](Value kx) {
        const Value tap[2] = {ky * dilation_[0], kx * dilation_[1]};
        body(tap, tap[0] * read_stride_[0] + tap[1] * read_stride_[1]);
      });
    });
  }

  void maximum() {
    const Value lowest = lowest_of(b_, from_.dtype);
    each_lane([&](Value i) {
      total_.store(i, lowest);
      where_.store(i, number(-1));
    });
    each_tap([&](const Value* tap, Value step) {
      each_lane([&](Value i) {
        const Value before = total_.load(i), seen = where_.load(i), at = offset_.load(i) + step;
        const Value valid = clipped_ ? tap_inside(i, tap) : b_.boolean(true);
        const Value x = load(clipped_ ? select(valid, at, 0) : at);
        const Value takes = valid & ((x > before) | is_nan(x) | (seen < 0));
        const Value position = (at_[0].load(i) + tap[0]) * read_size_[1] + at_[1].load(i) + tap[1];
        total_.store(i, select(takes, x, before));
        where_.store(i, select(takes, position, seen));
      });
    });
    each_written([&](Value i, Value to) {
      to_.store(to, total_.load(i));
      indices_.store(to, cast(Type::kI64, where_.load(i)));
    });
  }

  // Sums, over the taps of a lane's window or the windows over a lane, in their order.
  void average() {
    each_lane([&](Value i) { total_.store(i, b_.constant(type_, 0)); });
    if (kind_ == PlanePoolKernel::kAverageBackward) {
      const Value rows = divide_up(window_[0], stride_[0]);
      const Value columns = divide_up(window_[1], stride_[1]);
      b_.loop(number(0), rows, [&](Value ky) {
        b_.loop(number(0), columns, [&](Value kx) {
          const Value back[2] = {rows - 1 - ky, columns - 1 - kx};
          each_lane([&](Value i) { total_.store(i, total_.load(i) + share(i, back)); });
        });
      });
    } else {
      each_tap([&](const Value* tap, Value step) {
        each_lane([&](Value i) { total_.store(i, total_.load(i) + term(i, tap, step)); });
      });
    }
    each_written([&](Value i, Value to) { to_.store(to, mean(i)); });
  }

  static Value divide_up(Value a, Value b) { return (a + b - 1) / b; }

  Value term(Value i, const Value* tap, Value step) {
    const Value at = offset_.load(i) + step;
    if (!clipped_ && !adaptive_) return load(at);
    const Value valid = adaptive_ ? (tap[0] <= reach_[0].load(i)) & (tap[1] <= reach_[1].load(i))
                                  : tap_inside(i, tap);
    Value x = load(select(valid, at, 0));
    if (kind_ == PlanePoolKernel::kAdaptiveBackward) {
      Value count = number(1);
      for (int d = 0; d < 2; ++d) {
        const Value window = at_[d].load(i) + tap[d];
        const Value last = quotient((window + 1) * size_[d] - 1, inverse_read_[d]);
        count = count * (last + 1 - quotient(window * size_[d], inverse_read_[d]));
      }
      x = x / cast(type_, count);
    }
    return select(valid, x, 0.0);
  }

  Value mean(Value i) {
    const Value total = total_.load(i);
    if (kind_ == PlanePoolKernel::kAverage) {
      return total / divisor(at_[0].load(i), at_[1].load(i), read_size_);
    }
    if (kind_ != PlanePoolKernel::kAdaptive) return total;
    return total / cast(type_, (reach_[0].load(i) + 1) * (reach_[1].load(i) + 1));
  }

  // What a lane gets of the window that lies back windows before the last one over it.
  Value share(Value i, const Value* back) {
    Value valid = b_.boolean(true), at = offset_.load(i), begin[2];
    for (int d = 0; d < 2; ++d) {
      const Value window = at_[d].load(i) - back[d];
      valid = valid & within(window, read_size_[d]) &
              (reach_[d].load(i) + back[d] * stride_[d] < window_[d]);
      at = at - back[d] * read_stride_[d];
      begin[d] = window * stride_[d] - padding_[d];
    }
    const Value part = load(select(valid, at, 0)) / divisor(begin[0], begin[1], size_);
    return select(valid, part, 0.0);
  }

  // Elements of the window from begin on along dimension d of an image.
  Value length(Value begin, int d, const Value* size) {
    const Value end = begin + window_[d];
    const Value padded = ir::minimum(end, size[d] + padding_[d]) - begin;
    const Value plain = ir::minimum(end, size[d]) - ir::maximum(begin, number(0));
    return select(count_padding_ != 0, padded, plain);
  }
  Value divisor(Value y, Value x, const Value* size) {
    const Value given = cast(type_, divisor_);
    if (!clipped_) return given;
    const Value count = cast(type_, length(y, 0, size) * length(x, 1, size));
    return select(divisor_ != 0, given, count);
  }

  const PlanePoolKernel::Kind kind_;
  const bool clipped_, adaptive_;
  Builder b_;
  const Type type_;
  // Of each lane: see place(); the sum or extremum so far and the extremum's position; how far its
  // element lies in its last window, or the last of its taps when adaptive.
  const Lanes at_[2] = {{b_, Type::kI32, kPlaneLanes}, {b_, Type::kI32, kPlaneLanes}};
  const Lanes offset_{b_, Type::kI32, kPlaneLanes}, total_{b_, type_, kPlaneLanes};
  const Lanes where_{b_, Type::kI32, kPlaneLanes};
  const Lanes reach_[2] = {{b_, Type::kI32, kPlaneLanes}, {b_, Type::kI32, kPlaneLanes}};
  Address to_, from_, indices_;
  Value rows_, rows_per_item_, channels_, image_stride_, channel_stride_, divisor_;
  Value size_[2], read_size_[2], read_stride_[2], window_[2], stride_[2], padding_[2], dilation_[2];
  Value count_padding_, inverse_size_[2], inverse_stride_[2], inverse_read_[2];
  Value first_row_, base_, count_, target_, width_;
};

// A line is a plane: zeros, then the gradient of each window added where its largest element was.
ir::Kernel max_backward(const PlanePoolKernel& kernel) {
  Builder b(kernel.key());
  const Address to = b.update(kernel.written), from = b.read(kernel.dtype);
  const Address indices = b.read(GRAFT_INT64);
  const IndexChecker checker(b);
  const Value planes = b.index(), per_item = b.index(), large = b.index(), small = b.index();
  const Value first = b.item() * per_item, end = ir::minimum(first + per_item, planes);
  const Value zero = b.constant(ir::compute_type(kernel.written), 0);
  b.vector_loop(first * large, end * large, [&](Value i) { to.store(i, zero); });
  b.loop(first, end, [&](Value plane) {
    each_largest(
        checker, plane * small, (plane + 1) * small, large,
        [&](Value i) { return indices.load(i); }, [&](Value i) { return from.load(i); },
        [&](Value, Value position, Value x) {
          const Value target = plane * large + position;
          to.store(target, to.load(target) + cast(zero.type(), x));
        });
  });
  return b.finish();
}

}  // namespace

std::string PlanePoolKernel::key() const {
  static const char* const kKinds[] = {"max",      "average",           "average_backward",
                                       "adaptive", "adaptive_backward", "max_backward"};
  return std::string("pool_planes_") + kKinds[kind] + (clipped ? "_clipped_" : "_") +
         name_of(dtype) + "_" + name_of(written);
}

ir::Kernel PlanePoolKernel::build() const {
  return kind == kMaxBackward ? max_backward(*this) : PlaneWriter(*this).write();
}

}  // namespace graft
