// src/kernels/convolution/tiled_convolution.cpp: convolutions as products of tiles, for GPU-like
// devices.
#include "kernels/convolution/tiled_convolution.h"

#include "kernels/convolution/spatial.h"
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
    s_.declare(b_, true);
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

  Value inside(const Value* at, const Value* sizes) {
    Value all = b_.boolean(true);
    for (int d = 0; d < 3; ++d) all = all & (at[d] >= 0) & (at[d] < sizes[d]);
    return all;
  }

  Value left_at(Value i, Value k) {
    Value at[3];
    if (kernel_.kind == GRAFT_CONVOLUTION_BACKWARD_WEIGHT) {
      const Value image = s_.split(k, s_.output, at);
      return s_.offset(s_.output_stride, image, group_ * outs_ + i, at);
    }
    const Value inner = s_.split(k, s_.taps, at);
    if (kernel_.kind == GRAFT_CONVOLUTION_FORWARD) {
      return s_.offset(s_.weight_stride, group_ * outs_ + i, inner, at);
    }
    return s_.offset(s_.weight_stride, group_ * outs_ + inner, i, at);
  }

  // Where the factor lies that is gathered; adds to in what keeps it within its tensor.
  Value right_at(Value k, Value j, Value* in) {
    Value tap[3], position[3], from[3];
    if (kernel_.kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) {
      const Value out = s_.split(k, s_.taps, tap), image = s_.split(j, s_.input, position);
      *in = s_.to_output(position, tap, from, *in);
      *in = *in & inside(from, s_.output);
      return s_.offset(s_.output_stride, image, group_ * outs_ + out, from);
    }
    const bool forward = kernel_.kind == GRAFT_CONVOLUTION_FORWARD;
    const Value channel = s_.split(forward ? k : j, s_.taps, tap);
    const Value image = s_.split(forward ? j : k, s_.output, position);
    s_.to_input(position, tap, from);
    *in = *in & inside(from, s_.input);
    return s_.offset(s_.input_stride, image, group_ * channels_ + channel, from);
  }

  Value target(Value y, Value x) {
    Value at[3];
    switch (kernel_.kind) {
      case GRAFT_CONVOLUTION_FORWARD: {
        const Value image = s_.split(x, s_.output, at);
        return s_.offset(s_.output_stride, image, group_ * outs_ + y, at);
      }
      case GRAFT_CONVOLUTION_BACKWARD_INPUT: {
        const Value image = s_.split(x, s_.input, at);
        return s_.offset(s_.input_stride, image, group_ * channels_ + y, at);
      }
      default: {
        const Value channel = s_.split(x, s_.taps, at);
        return s_.offset(s_.weight_stride, group_ * outs_ + y, channel, at);
      }
    }
  }

  const TiledConvolution kernel_;
  Builder b_;
  const Type type_;
  Address to_, first_, second_, bias_;
  Value m_, n_, k_, channels_, outs_, group_;  // channels and outs of a group
  SpatialParameters s_;
};

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
  Arguments arguments;
  arguments.write(written).read(first).read(second);
  if (biased) arguments.read(*bias);
  arguments.indices(
      {size.m, size.n, size.k, views.weight.sizes[1], views.weight.sizes[0] / parameters.groups},
      true);
  SpatialConvolution(views, parameters).append(arguments, true);
  const auto make = [&] { return TiledConvolutionWriter(kernel).write(); };
  launch_kernel(stream, kernel.key(), parameters.groups * tiles_of(shape, size.m, size.n),
                arguments, make, shape.group());
  return true;
}

}  // namespace graft
