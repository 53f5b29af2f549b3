// src/kernels/convolution/convolution.h: convolutions in one to three dimensions and their
// gradients.
#pragma once

#include <cstdint>

#include "graft/extensions.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Parameters for the spatial dimensions in order; unused entries keep their defaults.
struct ConvolutionParameters {
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};
  int64_t groups = 1;
  bool transposed = false;
};

// input [n, c, spatial...], weight [out, c / groups, spatial...] (transposed: [c, out / groups,
// spatial...]), output [n, out, spatial...]; one to three spatial dimensions, any strides, one
// floating dtype. The caller gives output its size and layout: the library is fastest when input
// and output are both channels-last. Uses graft.dnn where the driver supports the case,
// generated_convolution() otherwise. Sums are taken in float32 (float64 for float64).

// output = input * weight + bias (bias [out] of any stride, may be null). Integers of one dtype
// too, and small ones with output and bias int32, input of uint8, int8 or int16, weight of int8 or
// int16; a sum that is too large wraps.
GRAFT_EXPORT void convolution(Stream& stream, const TensorView& output, const TensorView& input,
                              const TensorView& weight, const TensorView* bias,
                              const ConvolutionParameters& parameters);

GRAFT_EXPORT void convolution_backward_input(Stream& stream, const TensorView& grad_input,
                                             const TensorView& grad_output,
                                             const TensorView& weight,
                                             const ConvolutionParameters& parameters);

GRAFT_EXPORT void convolution_backward_weight(Stream& stream, const TensorView& grad_weight,
                                              const TensorView& grad_output,
                                              const TensorView& input,
                                              const ConvolutionParameters& parameters);

// grad_bias [out] = grad_output summed over everything but dimension 1.
GRAFT_EXPORT void convolution_backward_bias(Stream& stream, const TensorView& grad_bias,
                                            const TensorView& grad_output);

// The three tensors of a plain convolution; which one is written depends on the kind.
struct ConvolutionViews {
  TensorView input, weight, output;
};

// The tensor that a kind writes and the two that it reads.
struct ConvolutionRoles {
  const TensorView &written, &first, &second;
};
inline ConvolutionRoles roles_of(graft_convolution_kind kind, const ConvolutionViews& views) {
  if (kind == GRAFT_CONVOLUTION_FORWARD) return {views.output, views.input, views.weight};
  if (kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) return {views.input, views.output, views.weight};
  return {views.weight, views.output, views.input};
}

// A convolution of any kind by generated kernels, for every floating dtype, convolution()'s small
// integers and any strides: by winograd_convolution(), blocked_convolution(),
// convolution_products(), tiled_convolution() or element_convolution(), the first that takes the
// case. bias is read by the forward kind only and may be null.
GRAFT_EXPORT void generated_convolution(Stream& stream, graft_convolution_kind kind,
                                        const ConvolutionViews& views, const TensorView* bias,
                                        const ConvolutionParameters& parameters);

// The call of a library, without epilogues.
graft_convolution describe_convolution(graft_convolution_kind kind, const ConvolutionViews& views,
                                       const ConvolutionParameters& parameters);

// Whether the device's library would take a channels-last convolution of this dtype: the binding
// then allocates outputs channels-last.
GRAFT_EXPORT bool prefers_channels_last(OpenDevice& device, graft_dtype dtype);

}  // namespace graft
