// src/kernels/convolution/element_convolution.cpp: convolutions of any kind, an element of the
// result by a work-item.
#include "kernels/convolution/element_convolution.h"

#include <algorithm>

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
    b_.indices({input_, kernel_, output_, step_, padding_, dilation_}, 3);
    b_.indices({input_stride_, weight_stride_, output_stride_}, 5);
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
  static Value offset(const Value* strides, Value outer, Value inner, const Value* spatial) {
    Value sum = outer * strides[0] + inner * strides[1];
    for (int d = 0; d < 3; ++d) sum = sum + spatial[d] * strides[2 + d];
    return sum;
  }

  // Splits line into at[0..2] (sizes spatial), then inner and outer.
  void split(Value line, const Value* spatial, Value inner_size) {
    Value rest = line;
    for (int d = 2; d >= 0; --d) {
      at_[d] = rest % spatial[d];
      rest = rest / spatial[d];
    }
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

  // Where an output position meets the input through a kernel position.
  Value source(Value output, Value kernel, int d) {
    return output * step_[d] - padding_[d] + kernel * dilation_[d];
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
    split(line, output_, outs_);
    const Value per_group = channels_ / groups_, group = inner_ / (outs_ / groups_);
    const Variable sum = zero();
    over(kernel_, [&](const Value* k) {
      const Value from[3] = {source(at_[0], k[0], 0), source(at_[1], k[1], 1),
                             source(at_[2], k[2], 2)};
      b_.if_(inside(from, input_), [&] {
        const Value image = offset(input_stride_, outer_, group * per_group, from);
        const Value weight = offset(weight_stride_, inner_, b_.i64(0), k);
        b_.loop(b_.i64(0), per_group, [&](Value c) {
          add_product(sum, image + c * input_stride_[1], weight + c * weight_stride_[1]);
        });
      });
    });
    const Value result = biased_ ? sum.get() + bias_.load(inner_) : sum.get();
    to_.store(offset(output_stride_, outer_, inner_, at_), result);
  }

  void backward_input(Value line) {
    split(line, input_, channels_);
    const Value per_group = channels_ / groups_, outs = outs_ / groups_;
    const Value group = inner_ / per_group, channel = inner_ % per_group;
    const Variable sum = zero();
    over(kernel_, [&](const Value* k) {
      Value from[3], fits = b_.boolean(true);
      for (int d = 0; d < 3; ++d) {
        const Value shifted = at_[d] + padding_[d] - k[d] * dilation_[d];
        from[d] = shifted / step_[d];
        fits = fits & (shifted >= 0) & (shifted % step_[d] == 0);
      }
      b_.if_(fits & inside(from, output_), [&] {
        const Value gradient = offset(output_stride_, outer_, group * outs, from);
        const Value weight = offset(weight_stride_, group * outs, channel, k);
        b_.loop(b_.i64(0), outs, [&](Value o) {
          add_product(sum, gradient + o * output_stride_[1], weight + o * weight_stride_[0]);
        });
      });
    });
    to_.store(offset(input_stride_, outer_, inner_, at_), sum.get());
  }

  void backward_weight(Value line) {
    const Value per_group = channels_ / groups_;
    split(line, kernel_, per_group);
    const Value channel = outer_ / (outs_ / groups_) * per_group + inner_;
    const Variable sum = zero();
    over(output_, [&](const Value* position) {
      const Value from[3] = {source(position[0], at_[0], 0), source(position[1], at_[1], 1),
                             source(position[2], at_[2], 2)};
      b_.if_(inside(from, input_), [&] {
        const Value gradient = offset(output_stride_, b_.i64(0), outer_, position);
        const Value image = offset(input_stride_, b_.i64(0), channel, from);
        b_.loop(b_.i64(0), images_, [&](Value n) {
          add_product(sum, gradient + n * output_stride_[0], image + n * input_stride_[0]);
        });
      });
    });
    to_.store(offset(weight_stride_, outer_, inner_, at_), sum.get());
  }

  const graft_convolution_kind kind_;
  const bool biased_;
  Builder b_;
  ir::Type type_;
  Address to_, first_, second_, bias_;
  Value lines_, per_item_, images_, channels_, outs_, groups_;
  Value input_[3], kernel_[3], output_[3], step_[3], padding_[3], dilation_[3];
  Value input_stride_[5], weight_stride_[5], output_stride_[5];
  Value outer_, inner_, at_[3];
};

// Spatial sizes, or all strides, with leading dimensions of one step.
void append_spatial(Arguments& arguments, const TensorView& view) {
  for (int d = view.rank - 2; d < 3; ++d) arguments.index(1);
  for (int d = 2; d < view.rank; ++d) arguments.index(view.sizes[d]);
}
void append_strides(Arguments& arguments, const TensorView& view) {
  arguments.index(view.strides[0]).index(view.strides[1]);
  for (int d = view.rank - 2; d < 3; ++d) arguments.index(0);
  for (int d = 2; d < view.rank; ++d) arguments.index(view.strides[d]);
}
void append_triple(Arguments& arguments, const int64_t* values, int rank, int64_t neutral) {
  for (int d = rank; d < 3; ++d) arguments.index(neutral);
  for (int d = 0; d < rank; ++d) arguments.index(values[d]);
}

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
  const int rank = views.input.rank - 2;
  Arguments arguments;
  arguments.write(written).read(first).read(second);
  if (biased) arguments.read(*bias);
  arguments.indices({split.lines, split.per_item, views.input.sizes[0], views.input.sizes[1],
                     views.output.sizes[1], parameters.groups});
  append_spatial(arguments, views.input);
  append_spatial(arguments, views.weight);
  append_spatial(arguments, views.output);
  append_triple(arguments, parameters.stride, rank, 1);
  append_triple(arguments, parameters.padding, rank, 0);
  append_triple(arguments, parameters.dilation, rank, 1);
  append_strides(arguments, views.input);
  append_strides(arguments, views.weight);
  append_strides(arguments, views.output);
  const auto make = [&] { return ConvolutionWriter(key, kind, dtypes, biased).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

}  // namespace graft
