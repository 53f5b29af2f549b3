// src/kernels/convolution/direct_convolution.cpp: the kinds of convolution as direct sums over
// patches, for CPU-like devices.
#include "kernels/convolution/direct_convolution.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/convolution/grouped_convolution.h"
#include "kernels/convolution/spatial.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

constexpr int64_t kMostRemainders = 64;  // more of them are launched than it pays
constexpr int64_t kRow = 8;              // shorter ones of many channels sum faster by element

// Forward, and for the gradient of the weight.
PatchProduct forward_product(const SpatialConvolution& spatial, int64_t groups,
                             const TensorView* bias) {
  PatchProduct product;
  product.input = spatial.input, product.output = spatial.output;
  product.factor = spatial.weight;
  product.factor.sizes[0] = spatial.weight.sizes[0] / groups;
  product.factor_step = product.factor.sizes[0] * spatial.weight.strides[0];
  product.groups = groups;
  product.bias = bias;
  for (int d = 0; d < 3; ++d) {
    product.grid.step[d] = spatial.step[d];
    product.grid.start[d] = -spatial.padding[d];
    product.grid.reach[d] = spatial.dilation[d];
  }
  return product;
}

// With the output's gradient as input and the input's gradient as output.
PatchProduct backward_product(const SpatialConvolution& spatial, int64_t groups) {
  PatchProduct product;
  product.input = spatial.output, product.output = spatial.input;
  product.factor = spatial.weight;
  const int64_t outs = spatial.weight.sizes[0] / groups;
  product.factor_step = outs * spatial.weight.strides[0];
  product.factor.sizes[0] = spatial.weight.sizes[1], product.factor.sizes[1] = outs;
  product.factor.strides[0] = spatial.weight.strides[1];
  product.factor.strides[1] = spatial.weight.strides[0];
  product.groups = groups;
  return product;
}

// Keeps input positions first, first + stride, ... and the taps that reach them: tap k meets them
// where first + padding - k * dilation is a multiple of the stride, the output then lies at that
// multiple. False where there is no such position; no tap leaves taps of 0.
bool keep_remainder(PatchProduct& product, const SpatialConvolution& spatial, int d,
                    int64_t first) {
  const int64_t stride = spatial.step[d], dilation = spatial.dilation[d];
  TensorView &output = product.output, &factor = product.factor;
  const int64_t size = output.sizes[2 + d], taps = factor.sizes[2 + d];
  if (first >= size) return false;
  output = part(output, 2 + d, first, (size - first + stride - 1) / stride);
  output.strides[2 + d] *= stride;
  int64_t tap = 0;
  while (tap < taps && (first + spatial.padding[d] - tap * dilation) % stride != 0) ++tap;
  const int64_t apart = stride / std::gcd(stride, dilation);
  factor = part(factor, 2 + d, tap < taps ? tap : 0, (taps - tap + apart - 1) / apart);
  factor.strides[2 + d] *= apart;
  product.grid.step[d] = 1;
  product.grid.start[d] = (first + spatial.padding[d] - tap * dilation) / stride;
  product.grid.reach[d] = -(apart * dilation / stride);
  return true;
}

std::vector<PatchProduct> remainders(const SpatialConvolution& spatial, int64_t groups) {
  std::vector<PatchProduct> products;
  for (int64_t z = 0; z < spatial.step[0]; ++z) {
    for (int64_t y = 0; y < spatial.step[1]; ++y) {
      for (int64_t x = 0; x < spatial.step[2]; ++x) {
        PatchProduct product = backward_product(spatial, groups);
        const int64_t first[3] = {z, y, x};
        bool any = true;
        for (int d = 0; d < 3; ++d) any = any && keep_remainder(product, spatial, d, first[d]);
        if (any) products.push_back(product);
      }
    }
  }
  return products;
}

bool has_dense_rows(const TensorView& view) {
  return view.sizes[view.rank - 1] == 1 || view.strides[view.rank - 1] == 1;
}

bool takes(const OpenDevice& device, graft_convolution_kind kind, const ConvolutionViews& views,
           const TensorView* bias, const ConvolutionParameters& parameters) {
  const graft_dtype dtype = views.output.dtype;
  if (device.properties().device_class != GRAFT_CPU_LIKE || !is_floating(dtype)) return false;
  if (views.input.dtype != dtype || views.weight.dtype != dtype) return false;
  if (bias != nullptr && bias->dtype != dtype) return false;
  const int last = views.input.rank - 1;
  const int64_t row = std::min(views.input.sizes[last], views.output.sizes[last]);
  if (parameters.groups == 1 && row < kRow) return false;
  int64_t remainders = 1;
  for (int d = 0; d < views.input.rank - 2; ++d) remainders *= parameters.stride[d];
  return kind != GRAFT_CONVOLUTION_BACKWARD_INPUT || remainders <= kMostRemainders;
}

void backward_input(Stream& stream, const SpatialConvolution& spatial, int64_t groups) {
  for (const PatchProduct& product : remainders(spatial, groups)) {
    if (product.taps() == 0) {
      fill(stream, product.output, Scalar::of(product.output.dtype, 0.0));
    } else {
      patch_sums(stream, product);
    }
  }
}

}  // namespace

bool convolution_products(Stream& stream, graft_convolution_kind kind,
                          const ConvolutionViews& views, const TensorView* bias,
                          const ConvolutionParameters& parameters) {
  if (views.input.count() == 0 || views.weight.count() == 0 || views.output.count() == 0) {
    return false;
  }
  const int64_t groups = parameters.groups;
  if (!takes(stream.device(), kind, views, bias, parameters)) return false;
  ConvolutionViews dense = views;
  if (kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) {
    const StagedInput gradient(stream, views.output, !has_dense_rows(views.output));
    StagedOutput result(stream, views.input, !has_dense_rows(views.input));
    dense.output = gradient.view(), dense.input = result.view();
    backward_input(stream, SpatialConvolution(dense, parameters), groups);
    result.finish();
    return true;
  }
  const StagedInput input(stream, views.input, !has_dense_rows(views.input));
  dense.input = input.view();
  if (kind == GRAFT_CONVOLUTION_FORWARD) {
    StagedOutput result(stream, views.output, !has_dense_rows(views.output));
    dense.output = result.view();
    patch_sums(stream, forward_product(SpatialConvolution(dense, parameters), groups, bias));
    result.finish();
    return true;
  }
  const StagedInput gradient(stream, views.output, !has_dense_rows(views.output));
  dense.output = gradient.view();
  patch_sums_factor(stream,
                    forward_product(SpatialConvolution(dense, parameters), groups, nullptr));
  return true;
}

}  // namespace graft
