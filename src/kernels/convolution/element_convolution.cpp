// src/kernels/convolution/element_convolution.cpp: convolutions of any kind, an element of the
// result by a work-item.
#include "kernels/convolution/element_convolution.h"

#include <algorithm>

#include "kernels/convolution/spatial.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// Of the tensor that is written and of the two that are read.
struct Dtypes {
  graft_dtype written, first, second;
};

class ConvolutionWriter {
 public:
  ConvolutionWriter(const std::string& key, graft_convolution_kind kind, const Dtypes& dtypes,
                    bool biased)
      : kind_(kind), biased_(biased), b_(key), type_(ir::compute_type(dtypes.written)) {
    to_ = b_.write(dtypes.written);
    first_ = b_.read(dtypes.first);
    second_ = b_.read(dtypes.second);
    bias_ = biased ? b_.read(dtypes.written) : first_;
    b_.indices({&lines_, &per_item_, &images_, &channels_, &outs_, &groups_});
    s_.declare(b_);
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      if (kind_ == GRAFT_CONVOLUTION_FORWARD) return forward(line);
      if (kind_ == GRAFT_CONVOLUTION_BACKWARD_INPUT) return backward_input(line);
      backward_weight(line);
    });
    return b_.finish();
  }

 private:
  // Splits line into at[0..2] (sizes spatial), then inner and outer.
  void split(Value line, const Value* spatial, Value inner_size) {
    const Value rest = s_.split(line, spatial, at_);
    inner_ = rest % inner_size;
    outer_ = rest / inner_size;
  }

  // body(position) for all positions within sizes.
  template <class Body>
  void over(const Value* sizes, Body body) {
    b_.loop(b_.i64(0), sizes[0], [&](Value z) {
      b_.loop(b_.i64(0), sizes[1], [&](Value y) {
        b_.loop(b_.i64(0), sizes[2], [&](Value x) {
          const Value position[3] = {z, y, x};
          body(position);
        });
      });
    });
  }

  Value inside(const Value* position, const Value* sizes) {
    Value all = (position[0] >= 0) & (position[0] < sizes[0]);
    for (int d = 1; d < 3; ++d) all = all & (position[d] >= 0) & (position[d] < sizes[d]);
    return all;
  }
  Variable zero() { return Variable(b_.constant(type_, 0)); }
  void add_product(const Variable& sum, Value first, Value second) {
    sum = sum.get() + cast(type_, first_.load(first)) * cast(type_, second_.load(second));
  }

  void forward(Value line) {
    split(line, s_.output, outs_);
    const Value per_group = channels_ / groups_, group = inner_ / (outs_ / groups_);
    const Variable sum = zero();
    over(s_.taps, [&](const Value* k) {
      Value from[3];
      s_.to_input(at_, k, from);
      b_.if_(inside(from, s_.input), [&] {
        const Value image = s_.offset(s_.input_stride, outer_, group * per_group, from);
        const Value weight = s_.offset(s_.weight_stride, inner_, b_.i64(0), k);
        b_.loop(b_.i64(0), per_group, [&](Value c) {
          add_product(sum, image + c * s_.input_stride[1], weight + c * s_.weight_stride[1]);
        });
      });
    });
    const Value result = biased_ ? sum.get() + bias_.load(inner_) : sum.get();
    to_.store(s_.offset(s_.output_stride, outer_, inner_, at_), result);
  }

  void backward_input(Value line) {
    split(line, s_.input, channels_);
    const Value per_group = channels_ / groups_, outs = outs_ / groups_;
    const Value group = inner_ / per_group, channel = inner_ % per_group;
    const Variable sum = zero();
    over(s_.taps, [&](const Value* k) {
      Value from[3];
      const Value fits = s_.to_output(at_, k, from, b_.boolean(true));
      b_.if_(fits & inside(from, s_.output), [&] {
        const Value gradient = s_.offset(s_.output_stride, outer_, group * outs, from);
        const Value weight = s_.offset(s_.weight_stride, group * outs, channel, k);
        b_.loop(b_.i64(0), outs, [&](Value o) {
          add_product(sum, gradient + o * s_.output_stride[1], weight + o * s_.weight_stride[0]);
        });
      });
    });
    to_.store(s_.offset(s_.input_stride, outer_, inner_, at_), sum.get());
  }

  void backward_weight(Value line) {
    const Value per_group = channels_ / groups_;
    split(line, s_.taps, per_group);
    const Value channel = outer_ / (outs_ / groups_) * per_group + inner_;
    const Variable sum = zero();
    over(s_.output, [&](const Value* position) {
      Value from[3];
      s_.to_input(position, at_, from);
      b_.if_(inside(from, s_.input), [&] {
        const Value gradient = s_.offset(s_.output_stride, b_.i64(0), outer_, position);
        const Value image = s_.offset(s_.input_stride, b_.i64(0), channel, from);
        b_.loop(b_.i64(0), images_, [&](Value n) {
          add_product(sum, gradient + n * s_.output_stride[0], image + n * s_.input_stride[0]);
        });
      });
    });
    to_.store(s_.offset(s_.weight_stride, outer_, inner_, at_), sum.get());
  }

  const graft_convolution_kind kind_;
  const bool biased_;
  Builder b_;
  ir::Type type_;
  Address to_, first_, second_, bias_;
  Value lines_, per_item_, images_, channels_, outs_, groups_;
  SpatialParameters s_;
  Value outer_, inner_, at_[3];
};

std::string key_of(graft_convolution_kind kind, const Dtypes& dtypes, bool biased) {
  static const char* const kKinds[] = {"forward_", "input_", "weight_"};
  std::string key = std::string("convolution_") + kKinds[kind] + (biased ? "bias_" : "");
  key += name_of(dtypes.written);
  if (dtypes.first != dtypes.written || dtypes.second != dtypes.written) {
    key += std::string("_") + name_of(dtypes.first) + "_" + name_of(dtypes.second);
  }
  return key;
}

}  // namespace

void element_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                         const TensorView* bias, const ConvolutionParameters& parameters) {
  const auto [written, first, second] = roles_of(kind, views);
  const int64_t products =
      views.weight.count() * views.output.count() / std::max<int64_t>(1, views.output.sizes[1]);
  const bool biased = bias != nullptr;
  const Dtypes dtypes{written.dtype, first.dtype, second.dtype};
  const std::string key = key_of(kind, dtypes, biased);
  const WorkSplit split = split_work(written.count(), 4 * products / written.count() + 1);
  Arguments arguments;
  arguments.write(written).read(first).read(second);
  if (biased) arguments.read(*bias);
  arguments.indices({split.lines, split.per_item, views.input.sizes[0], views.input.sizes[1],
                     views.output.sizes[1], parameters.groups});
  SpatialConvolution(views, parameters).append(arguments);
  const auto make = [&] { return ConvolutionWriter(key, kind, dtypes, biased).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

}  // namespace graft
