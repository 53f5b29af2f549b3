// src/kernels/norm/softmax.cpp: softmax and log_softmax over one dimension, and their gradients.
#include "kernels/norm/softmax.h"

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/norm/softmax_kernel.h"
#include "kernels/operation/offer.h"

namespace graft {
namespace {

WorkSplit split_of(const SoftmaxKernel& kernel, int64_t outer, int64_t n, int64_t inner) {
  if (!kernel.columns) return split_work(outer, 4 * n);
  const int64_t blocks = (inner + kernel.width() - 1) / kernel.width();
  if (kernel.deal != WorkMapping::kSpans) return {outer * blocks, 1, outer * blocks};
  return split_work(outer * blocks, 4 * n * std::min(inner, kernel.width()));
}

// saved is null for the forward pass.
void run(Stream& stream, const TensorView& output, const TensorView& input, const TensorView* saved,
         int dim, bool log) {
  if (output.count() == 0) return;
  StagedInput from(stream, input);
  StagedInput result(stream, saved ? *saved : input, saved != nullptr && !saved->contiguous());
  StagedOutput to(stream, output);
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < input.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.sizes[d];
  const int64_t n = input.rank == 0 ? 1 : input.sizes[dim];

  const bool brief = n <= kBriefLine;
  const bool together = inner > 1 || !brief;
  const WorkMapping deal = together ? deal_of_lines(stream.device()) : WorkMapping::kSpans;
  const SoftmaxKernel kernel{inner > 1, log, saved != nullptr, output.dtype, brief, deal};
  const WorkSplit split = split_of(kernel, outer, n, inner);
  Arguments arguments;
  arguments.update(to.view()).read(from.view());
  if (saved != nullptr) arguments.read(result.view());
  arguments.index(split.lines).index(split.per_item).index(n);
  if (kernel.columns) arguments.index(inner);
  const bool lanes = !kernel.columns && deal != WorkMapping::kSpans;
  launch_kernel(stream, kernel, lanes ? outer : split.grid, arguments, lanes ? kLanes : 1);
  to.finish();
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    for (bool log : {false, true}) {
      for (bool backward : {false, true}) {
        for (bool brief : {false, true}) {
          PackEntry::put(add,
                         SoftmaxKernel{false, log, backward, dtype, brief, WorkMapping::kSpans});
        }
      }
    }
  }
});

}  // namespace

void softmax(Stream& stream, const TensorView& output, const TensorView& input, int dim, bool log) {
  if (offer(stream, Operation::softmax, writes(output), reads(input), integers(dim, log))) return;
  run(stream, output, input, nullptr, dim, log);
}

void softmax_backward(Stream& stream, const TensorView& grad_input, const TensorView& grad_output,
                      const TensorView& output, int dim, bool log) {
  if (offer(stream, Operation::softmax_backward, writes(grad_input), reads(grad_output, output),
            integers(dim, log)))
    return;
  run(stream, grad_input, grad_output, &output, dim, log);
}

}  // namespace graft
