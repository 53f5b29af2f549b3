// src/kernels/convolution/tiled_convolution.cpp: convolutions as products of tiles, for GPU-like
// devices.
#include "kernels/convolution/tiled_convolution.h"

#include "kernels/matmul/tile_launch.h"
#include "kernels/matmul/tile_product.h"
#include "kernels/matmul/tuned_tiles.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

struct TiledConvolution {
  graft_convolution_kind kind;
  graft_dtype written, first, second;
  bool biased;
  TileShape shape;

  std::string key() const {
    static const char* const kKinds[] = {"forward_", "input_", "weight_"};
    return std::string("convolution_tiles_") + kKinds[kind] + (biased ? "bias_" : "") +
           shape.text() + "_" + name_of(written) + "_" + name_of(first) + "_" + name_of(second);
  }
};

// Positions are i32 all through.
class TiledConvolutionWriter {
 public:
  explicit TiledConvolutionWriter(const TiledConvolution& kernel)
      : kernel_(kernel),
        b_(kernel.key(), ir::Family::kGpuLike),
        type_(ir::compute_type(kernel.written)),
        to_(b_.write(kernel.written)),
        first_(b_.read(kernel.first)),
        second_(b_.read(kernel.second)),
        bias_(kernel.biased ? b_.read(kernel.written) : first_) {
    for (Value* value : {&m_, &n_, &k_, &channels_, &outs_}) *value = b_.index32();
    for (Value* triple : {input_, taps_, output_, step_, padding_, dilation_}) {
      for (int d = 0; d < 3; ++d) triple[d] = b_.index32();
    }
    for (Value* strides : {input_stride_, weight_stride_, output_stride_}) {
      for (int d = 0; d < 5; ++d) strides[d] = b_.index32();
    }
  }

  ir::Kernel write() {
    TileProduct product(b_, kernel_.shape, type_);
    const auto rows = static_cast<int>(kernel_.shape.rows);
    const auto columns = static_cast<int>(kernel_.shape.columns);
    const Value group = cast(Type::kI32, product.group());
    const Value down = (m_ + (rows - 1)) / rows, across = (n_ + (columns - 1)) / columns;
    const Value rest = group / down, row = group % down * rows, column = rest % across * columns;
    group_ = rest / across;
    const bool to_weight = kernel_.kind == GRAFT_CONVOLUTION_BACKWARD_WEIGHT;
    const auto left = [&](Value line, Value k) {
      const Value i = row + line, inside = (i < m_) & (k < k_);
      return read(to_weight ? first_ : second_, inside, left_at(i, k));
    };
    const auto right = [&](Value line, Value k) {
      const Value j = column + line;
      Value inside = (j < n_) & (k < k_);
      const Value at = right_at(k, j, &inside);
      return read(to_weight ? second_ : first_, inside, at);
    };
    const Along along = to_weight ? Along::kDepth : Along::kLines;
    product.multiply(k_, {Along::kDepth, left}, {along, right});
    product.each([&](Value i, Value j, Value sum) {
      const Value y = row + i, x = column + j;
      b_.if_((y < m_) & (x < n_), [&] {
        const Value result = kernel_.biased ? sum + bias_.load(group_ * outs_ + y) : sum;
        to_.store(target(y, x), result);
      });
    });
    return b_.finish();
  }

 private:
  Value read(const Address& factor, Value inside, Value at) {
    return select(inside, cast(type_, factor.load(select(inside, at, 0))), 0);
  }

  // Splits line into positions within sizes; what is left.
  static Value split(Value line, const Value* sizes, Value* at) {
    for (int d = 2; d >= 0; --d) {
      at[d] = line % sizes[d];
      line = line / sizes[d];
    }
    return line;
  }
  static Value offset(const Value* strides, Value outer, Value inner, const Value* at) {
    Value sum = outer * strides[0] + inner * strides[1];
    for (int d = 0; d < 3; ++d) sum = sum + at[d] * strides[2 + d];
    return sum;
  }
  Value inside(const Value* at, const Value* sizes) {
    Value all = b_.boolean(true);
    for (int d = 0; d < 3; ++d) all = all & (at[d] >= 0) & (at[d] < sizes[d]);
    return all;
  }

  Value left_at(Value i, Value k) {
    Value at[3];
    if (kernel_.kind == GRAFT_CONVOLUTION_BACKWARD_WEIGHT) {
      const Value image = split(k, output_, at);
      return offset(output_stride_, image, group_ * outs_ + i, at);
    }
    const Value inner = split(k, taps_, at);
    if (kernel_.kind == GRAFT_CONVOLUTION_FORWARD) {
      return offset(weight_stride_, group_ * outs_ + i, inner, at);
    }
    return offset(weight_stride_, group_ * outs_ + inner, i, at);
  }

  // Where the factor lies that is gathered; adds to in what keeps it within its tensor.
  Value right_at(Value k, Value j, Value* in) {
    Value tap[3], position[3], from[3];
    if (kernel_.kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) {
      const Value out = split(k, taps_, tap), image = split(j, input_, position);
      for (int d = 0; d < 3; ++d) {
        const Value shifted = position[d] + padding_[d] - tap[d] * dilation_[d];
        from[d] = shifted / step_[d];
        *in = *in & (shifted >= 0) & (shifted % step_[d] == 0);
      }
      *in = *in & inside(from, output_);
      return offset(output_stride_, image, group_ * outs_ + out, from);
    }
    const bool forward = kernel_.kind == GRAFT_CONVOLUTION_FORWARD;
    const Value channel = split(forward ? k : j, taps_, tap);
    const Value image = split(forward ? j : k, output_, position);
    for (int d = 0; d < 3; ++d) {
      from[d] = position[d] * step_[d] - padding_[d] + tap[d] * dilation_[d];
    }
    *in = *in & inside(from, input_);
    return offset(input_stride_, image, group_ * channels_ + channel, from);
  }

  Value target(Value y, Value x) {
    Value at[3];
    switch (kernel_.kind) {
      case GRAFT_CONVOLUTION_FORWARD: {
        const Value image = split(x, output_, at);
        return offset(output_stride_, image, group_ * outs_ + y, at);
      }
      case GRAFT_CONVOLUTION_BACKWARD_INPUT: {
        const Value image = split(x, input_, at);
        return offset(input_stride_, image, group_ * channels_ + y, at);
      }
      default: {
        const Value channel = split(x, taps_, at);
        return offset(weight_stride_, group_ * outs_ + y, channel, at);
      }
    }
  }

  const TiledConvolution kernel_;
  Builder b_;
  const Type type_;
  Address to_, first_, second_, bias_;
  Value m_, n_, k_, channels_, outs_, group_;  // channels and outs of a group
  Value input_[3], taps_[3], output_[3], step_[3], padding_[3], dilation_[3];
  Value input_stride_[5], weight_stride_[5], output_stride_[5];
};

void append32(Arguments& arguments, int64_t value) {
  arguments.scalar(Scalar::of(static_cast<int32_t>(value)), sizeof(int32_t));
}
void append_triple(Arguments& arguments, const int64_t* values, int rank, int64_t neutral) {
  for (int d = rank; d < 3; ++d) append32(arguments, neutral);
  for (int d = 0; d < rank; ++d) append32(arguments, values[d]);
}
void append_strides(Arguments& arguments, const TensorView& view) {
  append32(arguments, view.strides[0]);
  append32(arguments, view.strides[1]);
  append_triple(arguments, view.strides + 2, view.rank - 2, 0);
}

int64_t spatial(const TensorView& view) {
  int64_t count = 1;
  for (int d = 2; d < view.rank; ++d) count *= view.sizes[d];
  return count;
}

// Sizes of the product of one group.
struct Extents {
  int64_t m, n, k;
};
Extents extents_of(graft_convolution_kind kind, const ConvolutionViews& views, int64_t groups) {
  const int64_t channels = views.weight.sizes[1], outs = views.weight.sizes[0] / groups;
  const int64_t taps = spatial(views.weight), images = views.input.sizes[0];
  const int64_t results = images * spatial(views.output);
  if (kind == GRAFT_CONVOLUTION_FORWARD) return {outs, results, channels * taps};
  if (kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) {
    return {channels, images * spatial(views.input), outs * taps};
  }
  return {outs, channels * taps, results};
}

// Positions beyond a tensor's edge are computed, too, before they are dropped.
bool fits_32_bits(const ConvolutionViews& views, const ConvolutionParameters& parameters,
                  const Extents& size) {
  constexpr uint64_t kMost = uint64_t{1} << 29;
  for (const TensorView* view : {&views.input, &views.weight, &views.output}) {
    if (extent_bytes(*view) / size_of(view->dtype) > kMost) return false;
  }
  for (int d = 0; d < views.input.rank - 2; ++d) {
    const int64_t most = 1 << 24;
    if (parameters.stride[d] > most || parameters.padding[d] > most) return false;
    if (parameters.dilation[d] * views.weight.sizes[d + 2] > most * 4) return false;
    if (parameters.stride[d] * views.output.sizes[d + 2] > most * 16) return false;
  }
  const auto most = static_cast<int64_t>(kMost);
  return size.m <= most && size.n <= most && size.k <= most;
}

}  // namespace

bool tiled_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                       const TensorView* bias, const ConvolutionParameters& parameters) {
  const Extents size = extents_of(kind, views, parameters.groups);
  const auto shape = tile_for(stream.device(), TileUse::kConvolution,
                              roles_of(kind, views).written.dtype, size.m, size.n);
  return shape && tiled_convolution(stream, kind, views, bias, parameters, *shape);
}

bool tiled_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                       const TensorView* bias, const ConvolutionParameters& parameters,
                       const TileShape& shape) {
  const auto [written, first, second] = roles_of(kind, views);
  const Extents size = extents_of(kind, views, parameters.groups);
  if (size.m == 0 || size.n == 0 || size.k == 0 || first.count() == 0 || second.count() == 0) {
    return false;
  }
  if (!fits_32_bits(views, parameters, size)) return false;
  const bool biased = kind == GRAFT_CONVOLUTION_FORWARD && bias != nullptr;
  const TiledConvolution kernel{kind, written.dtype, first.dtype, second.dtype, biased, shape};
  const int rank = views.input.rank - 2;
  Arguments arguments;
  arguments.write(written).read(first).read(second);
  if (biased) arguments.read(*bias);
  for (const int64_t value :
       {size.m, size.n, size.k, views.weight.sizes[1], views.weight.sizes[0] / parameters.groups}) {
    append32(arguments, value);
  }
  append_triple(arguments, views.input.sizes + 2, rank, 1);
  append_triple(arguments, views.weight.sizes + 2, rank, 1);
  append_triple(arguments, views.output.sizes + 2, rank, 1);
  append_triple(arguments, parameters.stride, rank, 1);
  append_triple(arguments, parameters.padding, rank, 0);
  append_triple(arguments, parameters.dilation, rank, 1);
  append_strides(arguments, views.input);
  append_strides(arguments, views.weight);
  append_strides(arguments, views.output);
  const auto make = [&] { return TiledConvolutionWriter(kernel).write(); };
  launch_kernel(stream, kernel.key(), parameters.groups * tiles_of(shape, size.m, size.n),
                arguments, make, shape.group());
  return true;
}

}  // namespace graft
