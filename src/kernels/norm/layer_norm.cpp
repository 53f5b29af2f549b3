// src/kernels/norm/layer_norm.cpp: layer normalisation of rows and its gradients.

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/norm/layer_norm_kernel.h"
#include "kernels/norm/normalization.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/programs.h"
#include "kernels/reduce/reduce.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

// Rows whose contributions to the parameters' gradients are summed by one work-item.
constexpr int64_t kRowsPerChunk = 64;

// grid: work-items, or groups where these take rows.
void launch(Stream& stream, const LayerNormKernel& kernel, const Arguments& arguments,
            int64_t grid) {
  const bool rows =
      kernel.deal != WorkMapping::kSpans && kernel.step != LayerNormKernel::kParameters;
  launch_kernel(stream, kernel, grid, arguments, rows ? kLanes : 1);
}

WorkSplit split_rows(const LayerNormKernel& kernel, int64_t rows, int64_t elements) {
  return kernel.deal == WorkMapping::kSpans ? split_work(rows, elements) : WorkSplit{rows, 1, rows};
}

// Sums [chunks, n] over the chunks into a contiguous vector.
void sum_chunks(Stream& stream, const TensorView& vector, const TensorView& partials) {
  TensorView output = partials;
  output.address = vector.address;
  output.dtype = vector.dtype;
  output.strides[0] = 0;
  reduce(stream, Reduction::kSum, output, partials);
}

void parameter_gradients(Stream& stream, const NormGradients& gradients,
                         const TensorView& grad_output, const TensorView& input,
                         const TensorView& mean, const TensorView& rstd, int64_t rows, int64_t n) {
  if (gradients.weight == nullptr && gradients.bias == nullptr) return;
  const int64_t chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk;
  const graft_dtype wide = mean.dtype;
  const ScratchTensor weights(stream, wide, {chunks, n}), biases(stream, wide, {chunks, n});
  const LayerNormKernel kernel{
      LayerNormKernel::kParameters,  false, false, input.dtype, input.dtype, wide,
      deal_of_lines(stream.device())};
  const int64_t lines = kernel.deal == WorkMapping::kSpans ? chunks : chunks * n;
  Arguments arguments;
  arguments.update(weights.view()).update(biases.view());
  arguments.read(grad_output).read(input).read(mean).read(rstd);
  arguments.index(lines).index(1).index(n).index(rows).index(kRowsPerChunk);
  launch(stream, kernel, arguments, lines);
  if (gradients.weight != nullptr) sum_chunks(stream, *gradients.weight, weights.view());
  if (gradients.bias != nullptr) sum_chunks(stream, *gradients.bias, biases.view());
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    for (auto step :
         {LayerNormKernel::kForward, LayerNormKernel::kInput, LayerNormKernel::kParameters}) {
      const bool forward = step == LayerNormKernel::kForward;
      const bool weight = step != LayerNormKernel::kParameters;
      PackEntry::put(add, LayerNormKernel{step, weight, forward, dtype, dtype, GRAFT_FLOAT32,
                                          WorkMapping::kSpans});
    }
  }
});

}  // namespace

void layer_norm(Stream& stream, const TensorView& output, const TensorView* mean,
                const TensorView* rstd, const TensorView& input, const TensorView* weight,
                const TensorView* bias, int64_t rows, int64_t n, double epsilon) {
  if (offer(stream, Operation::layer_norm, writes(output, mean, rstd), reads(input, weight, bias),
            integers(rows, n), numbers(epsilon)))
    return;
  if (rows == 0) return;
  const bool all = mean != nullptr && rstd != nullptr;
  const ScratchTensor unwanted(stream, wide_dtype(input.dtype), {all ? 0 : rows});
  if (mean == nullptr) mean = &unwanted.view();
  if (rstd == nullptr) rstd = &unwanted.view();
  const TensorView* parameter = weight != nullptr ? weight : bias;
  const LayerNormKernel kernel{LayerNormKernel::kForward,
                               weight != nullptr,
                               bias != nullptr,
                               input.dtype,
                               parameter != nullptr ? parameter->dtype : input.dtype,
                               mean->dtype,
                               deal_of_lines(stream.device())};
  const WorkSplit split = split_rows(kernel, rows, 3 * n);
  Arguments arguments;
  arguments.write(output).write(*mean).write(*rstd).read(input);
  if (weight != nullptr) arguments.read(*weight);
  if (bias != nullptr) arguments.read(*bias);
  arguments.index(split.lines).index(split.per_item).index(n);
  arguments.scalar(Scalar::of(epsilon), sizeof(epsilon));
  launch(stream, kernel, arguments, split.grid);
}

void layer_norm_backward(Stream& stream, const NormGradients& gradients,
                         const TensorView& grad_output, const TensorView& input,
                         const TensorView& mean, const TensorView& rstd, const TensorView* weight,
                         int64_t rows, int64_t n) {
  if (offer(stream, Operation::layer_norm_backward,
            writes(gradients.input, gradients.weight, gradients.bias),
            reads(grad_output, input, mean, rstd, weight), integers(rows, n)))
    return;
  if (gradients.input != nullptr && rows > 0) {
    const LayerNormKernel kernel{LayerNormKernel::kInput,
                                 weight != nullptr,
                                 false,
                                 input.dtype,
                                 weight != nullptr ? weight->dtype : input.dtype,
                                 mean.dtype,
                                 deal_of_lines(stream.device())};
    const WorkSplit split = split_rows(kernel, rows, 4 * n);
    Arguments arguments;
    arguments.write(*gradients.input).read(grad_output).read(input).read(mean).read(rstd);
    if (weight != nullptr) arguments.read(*weight);
    arguments.index(split.lines).index(split.per_item).index(n);
    launch(stream, kernel, arguments, split.grid);
  }
  if (rows > 0) {
    return parameter_gradients(stream, gradients, grad_output, input, mean, rstd, rows, n);
  }
  for (const TensorView* gradient : {gradients.weight, gradients.bias}) {
    if (gradient != nullptr) fill(stream, *gradient, Scalar::of(0.0));
  }
}

}  // namespace graft
