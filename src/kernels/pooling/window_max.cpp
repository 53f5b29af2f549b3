// src/kernels/pooling/window_max.cpp: the largest elements of windows of images and volumes.
#include "kernels/pooling/window_max.h"

#include <fmt/format.h>

#include <optional>

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/strided_loop.h"
#include "kernels/operation/offer.h"
#include "kernels/pooling/kernel.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// Operands of the loops: output, indices, input's plane, sample of the plane, then the output's
// coordinates.
constexpr int kOperands = 7;

class WindowWriter {
 public:
  WindowWriter(const std::string& key, graft_dtype dtype, Windows::Kind kind)
      : kind_(kind), b_(key), to_(b_.write(dtype)), indices_(b_.write(GRAFT_INT64)) {
    from_ = b_.read(dtype);
    if (kind_ == Windows::kFractional) {
      samples_ = b_.read(dtype);
      checker_.emplace(b_);
    }
    for (Value* values : {in_, out_, kernel_, stride_, padding_, dilation_, pitch_, sample_}) {
      for (int d = 0; d < 3; ++d) values[d] = b_.index();
    }
  }

  ir::Kernel write() {
    StridedLoop loop(b_, kOperands);
    loop.each([&](const std::vector<Value>& at) { element(at); });
    return b_.finish();
  }

 private:
  struct Range {
    Value begin, end, drawn;  // drawn: where samples put the begin, unchecked
  };

  Range range(int d, Value at, Value sample) {
    if (kind_ == Windows::kAdaptive) {
      return {at * in_[d] / out_[d], ((at + 1) * in_[d] + out_[d] - 1) / out_[d], {}};
    }
    if (kind_ == Windows::kRegular) {
      const Value first = at * stride_[d] - padding_[d];
      // The first multiple of the dilation that is inside.
      const Value missing = ir::maximum(-first, b_.i64(0));
      const Value begin = first + (missing + dilation_[d] - 1) / dilation_[d] * dilation_[d];
      const Value end = first + (kernel_[d] - 1) * dilation_[d] + 1;
      return {begin, ir::minimum(end, in_[d]), {}};
    }
    const Value u = samples_.load(sample + sample_[d]);
    const ir::Type type = u.type();
    const Value last = in_[d] - kernel_[d];
    const Value steps = ir::maximum(out_[d] - 1, b_.i64(1));
    const Value alpha = cast(type, last) / cast(type, steps);
    const Value inner = cast(ir::Type::kI64, trunc((cast(type, at) + u) * alpha)) -
                        cast(ir::Type::kI64, trunc(u * alpha));
    const Value drawn = select(at == out_[d] - 1, last, inner);
    const Value begin = checker_->check(select(kernel_[d] > 0, drawn, 0), last + 1, false);
    return {begin, begin + ir::maximum(kernel_[d], b_.i64(0)), drawn};
  }

  void element(const std::vector<Value>& at) {
    Range ranges[3];
    for (size_t d = 0; d < 3; ++d) ranges[d] = range(static_cast<int>(d), at[4 + d], at[3]);
    const bool drawn = kind_ == Windows::kFractional;
    const auto position = [&](Value z, Value y, Value x) { return (z * in_[1] + y) * in_[2] + x; };
    const Variable best(lowest_of(b_, from_.dtype));
    const Variable where(drawn ? position(ranges[0].drawn, ranges[1].drawn, ranges[2].drawn)
                               : b_.i64(-1));
    const auto loop = [&](int d, auto body) {
      b_.loop(ranges[d].begin, ranges[d].end, body, dilation_[d]);
    };
    loop(0, [&](Value z) {
      loop(1, [&](Value y) {
        const Value row = at[2] + z * pitch_[0] + y * pitch_[1];
        loop(2, [&](Value x) {
          const Value value = from_.load(row + x * pitch_[2]);
          b_.if_((value > best.get()) | is_nan(value) | (where.get() < 0), [&] {
            best = value;
            where = position(z, y, x);
          });
        });
      });
    });
    to_.store(at[0], best.get());
    indices_.store(at[1], where.get());
  }

  const Windows::Kind kind_;
  Builder b_;
  std::optional<IndexChecker> checker_;
  Address to_, indices_, from_, samples_;
  Value in_[3], out_[3], kernel_[3], stride_[3], padding_[3], dilation_[3], pitch_[3], sample_[3];
};

Axes axes_of(const TensorView& output, const TensorView& indices, const TensorView& input,
             const TensorView* samples) {
  Axes axes;
  axes.operands = kOperands;
  for (int d = 0; d < 5; ++d) {
    if (output.sizes[d] == 1) continue;
    Axis axis;
    axis.size = output.sizes[d];
    axis.strides[0] = output.strides[d];
    axis.strides[1] = indices.strides[d];
    if (d < 2) {
      axis.strides[2] = input.strides[d];
      axis.strides[3] = samples == nullptr ? 0 : samples->strides[d];
    } else {
      axis.strides[2 + d] = 1;
    }
    axes.push(axis);
  }
  return axes;
}

}  // namespace

void window_max(Stream& stream, const TensorView& output, const TensorView& indices,
                const TensorView& input, const Windows& windows, const TensorView* samples,
                bool reversed) {
  if (output.rank != 5 || input.rank != 5 || is_complex(input.dtype)) {
    throw Error(GRAFT_INVALID_ARGUMENT, "window_max: expected real volumes [n, c, d, h, w], got " +
                                            std::string(name_of(input.dtype)) + " of rank " +
                                            std::to_string(input.rank));
  }
  if (output.count() == 0) return;
  if (offer(stream, Operation::window_max, writes(output, indices), reads(input, samples),
            integers(windows.kind, reversed, windows.kernel, windows.stride, windows.padding,
                     windows.dilation)))
    return;
  static const char* const kKinds[] = {"regular", "adaptive", "fractional"};
  const std::string key =
      fmt::format("window_max_{}_{}", kKinds[windows.kind], name_of(input.dtype));
  Arguments arguments;
  arguments.write(output).write(indices).read(input);
  if (windows.kind == Windows::kFractional) {
    arguments.read(*samples);
    append_checker(arguments, stream);
  }
  const auto sample = [&](int64_t d) {
    if (samples == nullptr) return int64_t{0};
    const int64_t missing = 3 - samples->sizes[2];
    const int64_t at = reversed ? 2 - d : d - missing;
    return std::max<int64_t>(at, 0) % samples->sizes[2] * samples->strides[2];
  };
  const int64_t samples_at[3] = {sample(0), sample(1), sample(2)};
  for (const int64_t* three : {input.sizes + 2, output.sizes + 2, windows.kernel, windows.stride,
                               windows.padding, windows.dilation, input.strides + 2, samples_at}) {
    arguments.index(three[0]).index(three[1]).index(three[2]);
  }
  const WorkSplit split = append_loops(arguments, axes_of(output, indices, input, samples));
  launch_kernel(stream, key, split.grid, arguments,
                [&] { return WindowWriter(key, input.dtype, windows.kind).write(); });
}

}  // namespace graft
