// src/kernels/convolution/blocked_convolution.cpp: convolutions as register-blocked products of
// packed patches.
#include "kernels/convolution/blocked_convolution.h"

#include <algorithm>
#include <optional>

#include "kernels/convolution/channel_views.h"
#include "kernels/convolution/patch_matmul.h"
#include "kernels/convolution/patch_pack.h"
#include "kernels/matmul/blocked_matmul.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

constexpr int64_t kGroups = 64;      // more are cheaper in one direct kernel
constexpr int64_t kGroupLines = 16;  // below that a group's tiles are mostly empty

PatchGeometry geometry_of(const ConvolutionViews& views, const ConvolutionParameters& parameters) {
  PatchGeometry geometry;
  geometry.rank = views.input.rank - 2;
  for (int d = 0; d < geometry.rank; ++d) {
    geometry.kernel[d] = views.weight.sizes[2 + d];
    geometry.positions[d] = views.output.sizes[2 + d];
    geometry.step[d] = parameters.stride[d];
    geometry.padding[d] = parameters.padding[d];
    geometry.dilation[d] = parameters.dilation[d];
  }
  return geometry;
}

// Whether the 32 bits in which pack_patches() counts reach every element, of a gradient spread to
// its places in the input, too.
bool counts_in_32_bits(const ConvolutionViews& views, const PatchGeometry& geometry) {
  constexpr double kMost = int64_t{1} << 29;
  double spread = static_cast<double>(views.output.sizes[0] * views.output.sizes[1]);
  for (int d = 0; d < geometry.rank; ++d) {
    const double places = static_cast<double>(views.output.sizes[2 + d] * geometry.step[d]);
    spread *= places + static_cast<double>(geometry.dilation[d] * geometry.kernel[d]);
  }
  const auto elements = [](const TensorView& view) {
    return static_cast<double>(extent_bytes(view)) / static_cast<double>(size_of(view.dtype));
  };
  return std::max({spread, elements(views.input), elements(views.output)}) < kMost;
}

bool fits(Stream& stream, const TensorView& like, int64_t m, int64_t n, int64_t k) {
  return fits_blocks(stream.device(), matrices(like, 1, m, n), matrices(like, 1, m, k),
                     matrices(like, 1, k, n));
}

bool forward(Stream& stream, const ConvolutionViews& views, const TensorView* bias,
             const PatchGeometry& geometry) {
  if (bias != nullptr && bias->dtype != views.output.dtype) return false;
  const int64_t depth = views.weight.sizes[1] * geometry.taps();
  if (views.input.dtype != views.output.dtype || views.weight.dtype != views.output.dtype ||
      !fits(stream, views.output, views.output.sizes[1], views.input.sizes[0] * geometry.count(),
            depth)) {
    return false;
  }
  StagedInput weight(stream, views.weight, !is_contiguous_from(views.weight, 0));
  multiply_patches(stream, views.output, weight.view(), views.input, geometry, bias);
  return true;
}

// Writes from to every stride-th place of to, zeros elsewhere.
void spread(Stream& stream, const TensorView& to, const TensorView& from, const int64_t* stride) {
  fill(stream, to, Scalar::of(to.dtype, 0.0));
  TensorView places = to;
  for (int d = 2; d < to.rank; ++d) {
    places.sizes[d] = from.sizes[d];
    places.strides[d] *= stride[d - 2];
  }
  copy(stream, places, from);
}

bool backward_input(Stream& stream, const ConvolutionViews& views, PatchGeometry geometry) {
  int64_t step[3] = {1, 1, 1};
  bool strided = false, single = true;
  for (int d = 0; d < geometry.rank; ++d) {
    single = single && geometry.kernel[d] == 1 && geometry.padding[d] == 0;
    strided = strided || geometry.step[d] != 1;
    std::swap(step[d], geometry.step[d]);
    geometry.padding[d] = geometry.dilation[d] * (geometry.kernel[d] - 1) - geometry.padding[d];
  }
  const bool later = strided && single;  // the product is spread, not the gradient
  if (!later) {
    std::copy(views.input.sizes + 2, views.input.sizes + views.input.rank, geometry.positions);
  }
  const int64_t depth = views.output.sizes[1] * geometry.taps();
  const int64_t positions = views.input.sizes[0] * geometry.count();
  if (!fits(stream, views.input, views.input.sizes[1], positions, depth)) return false;
  const StagedInput turned(stream, turned_about(views.weight), true);
  const TensorView& weight = turned.view();
  if (!strided) {
    multiply_patches(stream, views.input, weight, views.output, geometry, nullptr);
    return true;
  }
  TensorView sizes = views.output;
  if (later) sizes.sizes[1] = views.input.sizes[1];
  for (int d = 0; !later && d < geometry.rank; ++d) {
    sizes.sizes[2 + d] = (views.output.sizes[2 + d] - 1) * step[d] + 1;
  }
  const ScratchTensor wide(stream, sizes, sizes.dtype);
  if (later) {
    multiply_patches(stream, wide.view(), weight, views.output, geometry, nullptr);
    spread(stream, views.input, wide.view(), step);
    return true;
  }
  spread(stream, wide.view(), views.output, step);
  multiply_patches(stream, views.input, weight, wide.view(), geometry, nullptr);
  return true;
}

// [out, images * positions]: the gradient itself where it lies so, otherwise a copy in space.
TensorView outs_by_positions(Stream& stream, const TensorView& view,
                             std::optional<StagedInput>& space) {
  if (const auto matrix = as_matrix(view)) return channels_first(*matrix);
  TensorView result = space.emplace(stream, channels_first(view), true).view();
  result.sizes[1] = result.count() / result.sizes[0];
  result.rank = 2;
  result.strides[0] = result.sizes[1], result.strides[1] = 1;
  return result;
}

bool backward_weight(Stream& stream, const ConvolutionViews& views, const PatchGeometry& geometry) {
  const int64_t images = views.input.sizes[0], outs = views.weight.sizes[0];
  const int64_t depth = views.weight.sizes[1] * geometry.taps(), positions = geometry.count();
  if (!fits(stream, views.weight, outs, depth, images * positions)) return false;
  const int64_t width = panel_columns(stream.device());
  const int64_t together = images_in_a_turn(views.input, geometry, PatchLines::kRows, width);
  const ScratchTensor sum(stream, views.weight, GRAFT_FLOAT32);
  TensorView product = sum.view();
  product.rank = 2, product.sizes[1] = depth, product.strides[0] = depth, product.strides[1] = 1;
  const Workspace panels(
      stream, patch_bytes(part(views.input, 0, 0, together), geometry, PatchLines::kRows, width));
  for (int64_t first = 0; first < images; first += together) {
    const int64_t count = std::min(together, images - first);
    std::optional<StagedInput> space;
    const TensorView left = outs_by_positions(stream, part(views.output, 0, first, count), space);
    const TensorView input = part(views.input, 0, first, count);
    pack_patches(stream, panels.address(), input, geometry, PatchLines::kRows, width);
    MatmulEpilogue epilogue;
    epilogue.addend = first > 0 ? &product : nullptr;
    epilogue.beta = first > 0 ? 1.0 : 0.0;
    const uint64_t bytes = patch_bytes(input, geometry, PatchLines::kRows, width);
    const PackedFactor right{panels.address(), bytes, 0, count * positions};
    blocked_matmul(stream, product, left, right, epilogue);
  }
  copy(stream, views.weight, sum.view());
  return true;
}

bool one_group(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
               const TensorView* bias, const PatchGeometry& geometry) {
  if (kind == GRAFT_CONVOLUTION_FORWARD) return forward(stream, views, bias, geometry);
  if (kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) return backward_input(stream, views, geometry);
  return backward_weight(stream, views, geometry);
}

}  // namespace

bool blocked_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                         const TensorView* bias, const ConvolutionParameters& parameters) {
  const int64_t groups = parameters.groups;
  if (groups < 1 || groups > kGroups) return false;
  if (views.input.count() == 0 || views.weight.count() == 0 || views.output.count() == 0) {
    return false;
  }
  const PatchGeometry geometry = geometry_of(views, parameters);
  if (!counts_in_32_bits(views, geometry)) return false;
  const int64_t channels = views.input.sizes[1] / groups, outs = views.output.sizes[1] / groups;
  if (groups > 1 && std::min(channels, outs) < kGroupLines) return false;
  for (int64_t g = 0; g < groups; ++g) {
    const ConvolutionViews views_of_group{part(views.input, 1, g * channels, channels),
                                          part(views.weight, 0, g * outs, outs),
                                          part(views.output, 1, g * outs, outs)};
    std::optional<TensorView> added;
    if (bias != nullptr) added = part(*bias, 0, g * outs, outs);
    // All groups are alike, so the first tells.
    if (!one_group(stream, kind, views_of_group, added ? &*added : nullptr, geometry)) return false;
  }
  return true;
}

}  // namespace graft
