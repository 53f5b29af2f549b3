// src/kernels/convolution/convolution.cpp: convolutions through the driver's library or generated
// kernels.
#include "kernels/convolution/convolution.h"

#include <optional>

#include "kernels/convolution/blocked_convolution.h"
#include "kernels/convolution/channel_views.h"
#include "kernels/convolution/direct_convolution.h"
#include "kernels/convolution/element_convolution.h"
#include "kernels/convolution/tiled_convolution.h"
#include "kernels/convolution/winograd.h"
#include "kernels/launch/library.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// Which of a plan's tensors it writes.
uint32_t result_of(graft_convolution_kind kind) {
  if (kind == GRAFT_CONVOLUTION_FORWARD) return 2;
  return kind == GRAFT_CONVOLUTION_BACKWARD_INPUT ? 0 : 1;
}

bool library_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                         const TensorView* bias, const ConvolutionParameters& parameters) {
  graft_convolution call = describe_convolution(kind, views, parameters);
  if (bias != nullptr) append_epilogue(&call, GRAFT_EPILOGUE_BIAS, bias->dtype, 1.0);
  const auto plan = library_plan(stream.device(), call);
  if (plan == nullptr) return false;
  graft_execution execution{};
  execution.tensors[0] = views.input.address;
  execution.tensors[1] = views.weight.address;
  execution.tensors[2] = views.output.address;
  if (bias != nullptr) execution.operands[0] = bias->address;
  execute_plan(stream, plan, execution, result_of(kind));
  return true;
}

bool offer_convolution(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
                       const TensorView* bias, const ConvolutionParameters& given) {
  const bool forward = kind == GRAFT_CONVOLUTION_FORWARD;
  const bool to_input = kind == GRAFT_CONVOLUTION_BACKWARD_INPUT;
  const Operation id = forward    ? Operation::convolution
                       : to_input ? Operation::convolution_backward_input
                                  : Operation::convolution_backward_weight;
  return offer(stream, id, [&](VendorCall& call) {
    call.write(roles_of(kind, views).written);
    call.read(to_input ? views.weight : views.input);
    call.read(forward ? views.weight : views.output);
    if (forward) call.read(bias);
    call.integers(std::span(given.stride)).integers(std::span(given.padding));
    call.integers(std::span(given.dilation)).integers({given.groups});
  });
}

void run(Stream& stream, graft_convolution_kind kind, const ConvolutionViews& views,
         const TensorView* bias, const ConvolutionParameters& parameters) {
  const int rank = views.input.rank;
  if (rank < 3 || rank > 5 || views.weight.rank != rank || views.output.rank != rank) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "convolution: tensors must have one to three spatial dimensions, got ranks " +
                    std::to_string(views.input.rank) + ", " + std::to_string(views.weight.rank) +
                    " and " + std::to_string(views.output.rank));
  }
  const TensorView& written = roles_of(kind, views).written;
  if (written.count() == 0) return;
  const bool works = views.input.count() > 0 && views.weight.count() > 0 &&
                     views.output.count() > 0 && !may_saturate(written.dtype);
  if (works && library_convolution(stream, kind, views, bias, parameters)) return;
  if (works && offer_convolution(stream, kind, views, bias, parameters)) return;
  generated_convolution(stream, kind, views, bias, parameters);
}

// output = sums + bias over dimension 1.
void add_bias(Stream& stream, const TensorView& output, const TensorView& sums,
              const TensorView& bias) {
  const graft_dtype compute = is_half(output.dtype) ? GRAFT_FLOAT32 : output.dtype;
  const Operand inputs[2] = {sums, over_channels(output, bias)};
  pointwise(stream, *find_op("plain_add"), compute, {&output, 1}, inputs);
}

}  // namespace

void generated_convolution(Stream& stream, graft_convolution_kind kind,
                           const ConvolutionViews& views, const TensorView* bias,
                           const ConvolutionParameters& parameters) {
  if (roles_of(kind, views).written.count() == 0) return;
  if (kind != GRAFT_CONVOLUTION_FORWARD) bias = nullptr;
  if (const int results = winograd_results(stream.device(), kind, views, bias, parameters)) {
    return winograd_convolution(stream, kind, views, bias, parameters, results);
  }
  if (blocked_convolution(stream, kind, views, bias, parameters)) return;
  if (convolution_products(stream, kind, views, bias, parameters)) return;
  if (tiled_convolution(stream, kind, views, bias, parameters)) return;
  element_convolution(stream, kind, views, bias, parameters);
}

graft_convolution describe_convolution(graft_convolution_kind kind, const ConvolutionViews& views,
                                       const ConvolutionParameters& parameters) {
  graft_convolution call{};
  call.struct_size = sizeof(call);
  call.kind = kind;
  call.math_mode = GRAFT_MATH_STRICT;
  call.input = describe(views.input);
  call.weight = describe(views.weight);
  call.output = describe(views.output);
  for (int i = 0; i < 3; ++i) {
    call.stride[i] = parameters.stride[i];
    call.padding[i] = parameters.padding[i];
    call.dilation[i] = parameters.dilation[i];
  }
  call.groups = parameters.groups;
  return call;
}

// A transposed convolution is the input gradient of the plain one with input and output swapped, so
// libraries see plain ones only.
void convolution(Stream& stream, const TensorView& output, const TensorView& input,
                 const TensorView& weight, const TensorView* bias,
                 const ConvolutionParameters& parameters) {
  if (!parameters.transposed) {
    std::optional<StagedInput> vector;  // libraries and kernels read it side by side
    if (bias != nullptr) bias = &vector.emplace(stream, *bias, !bias->contiguous()).view();
    run(stream, GRAFT_CONVOLUTION_FORWARD, {input, weight, output}, bias, parameters);
    return;
  }
  // Sums are rounded to a half type once, with their bias.
  const bool wide = bias != nullptr && is_half(output.dtype) && output.count() > 0;
  std::optional<ScratchTensor> memory;
  const TensorView& sums = wide ? memory.emplace(stream, output, GRAFT_FLOAT32).view() : output;
  run(stream, GRAFT_CONVOLUTION_BACKWARD_INPUT, {sums, weight, input}, nullptr, parameters);
  if (bias != nullptr) add_bias(stream, output, sums, *bias);
}

void convolution_backward_input(Stream& stream, const TensorView& grad_input,
                                const TensorView& grad_output, const TensorView& weight,
                                const ConvolutionParameters& parameters) {
  if (parameters.transposed) {
    run(stream, GRAFT_CONVOLUTION_FORWARD, {grad_output, weight, grad_input}, nullptr, parameters);
  } else {
    run(stream, GRAFT_CONVOLUTION_BACKWARD_INPUT, {grad_input, weight, grad_output}, nullptr,
        parameters);
  }
}

void convolution_backward_weight(Stream& stream, const TensorView& grad_weight,
                                 const TensorView& grad_output, const TensorView& input,
                                 const ConvolutionParameters& parameters) {
  const bool transposed = parameters.transposed;
  run(stream, GRAFT_CONVOLUTION_BACKWARD_WEIGHT,
      {transposed ? grad_output : input, grad_weight, transposed ? input : grad_output}, nullptr,
      parameters);
}

void convolution_backward_bias(Stream& stream, const TensorView& grad_bias,
                               const TensorView& grad_output) {
  reduce(stream, Reduction::kSum, over_channels(grad_output, grad_bias), grad_output);
}

bool prefers_channels_last(OpenDevice& device, graft_dtype dtype) {
  return is_floating(dtype) && dtype != GRAFT_FLOAT64 && has_dnn(device);
}

}  // namespace graft
