// src/kernels/pooling/pooling.cpp: max, average and adaptive average pooling of images, with
// gradients.
#include "kernels/pooling/pooling.h"

#include <optional>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/pooling/kernel.h"
#include "kernels/pooling/planes.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// The view with a leading image dimension.
TensorView image(const TensorView& view) {
  if (view.rank == 4) return view;
  if (view.rank != 3) {
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        "pooling: images must be [n, c, h, w] or [c, h, w], got rank " + std::to_string(view.rank));
  }
  TensorView result = view;
  result.rank = 4;
  result.sizes[0] = 1;
  result.strides[0] = 0;
  std::copy(view.sizes, view.sizes + 3, result.sizes + 1);
  std::copy(view.strides, view.strides + 3, result.strides + 1);
  return result;
}

bool same_strides(const TensorView& a, const TensorView& b) {
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

// large has the pooled tensor's sizes and strides, small those of the windows' results.
void launch(Stream& stream, const PoolKernel& kernel, Arguments& arguments, const TensorView& large,
            const TensorView& small, const PoolWindow& window, int64_t divisor, bool count_padding,
            const WorkSplit& split) {
  arguments.index(split.lines).index(split.per_item).index(large.sizes[1]);
  arguments.index(large.sizes[2]).index(large.sizes[3]);
  arguments.index(small.sizes[2]).index(small.sizes[3]);
  for (const int64_t* pair : {window.kernel, window.stride, window.padding, window.dilation}) {
    arguments.index(pair[0]).index(pair[1]);
  }
  for (int d = 0; d < 4; ++d) arguments.index(large.strides[d]);
  for (int d = 0; d < 4; ++d) arguments.index(small.strides[d]);
  arguments.index(divisor).index(count_padding ? 1 : 0);
  launch_kernel(stream, kernel, split.grid, arguments);
}

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

// A line for each pixel of view and block of channels.
WorkSplit pixels(const TensorView& view, int64_t elements_per_channel) {
  const int64_t lines = view.sizes[0] * view.sizes[2] * view.sizes[3];
  const int64_t width = std::min(view.sizes[1], kPoolBlock);
  return split_work(lines * blocks_of(view.sizes[1], kPoolBlock), width * elements_per_channel);
}

void average(Stream& stream, PoolKernel::Kind kind, const TensorView& to, const TensorView& from,
             const PoolWindow& window, int64_t divisor, bool count_padding) {
  const TensorView written = image(to), read = image(from);
  if (written.count() == 0) return;
  const bool backward =
      kind == PoolKernel::kAverageBackward || kind == PoolKernel::kAdaptiveBackward;
  const bool adaptive = kind == PoolKernel::kAdaptive || kind == PoolKernel::kAdaptiveBackward;
  const PlanePool planes(window, divisor, count_padding);
  const bool done = adaptive ? PlanePool::adaptive(stream, backward, written, read)
                             : planes.average(stream, backward, written, read);
  if (done) return;
  const TensorView& large = backward ? written : read;
  const TensorView& small = backward ? read : written;
  const int64_t pixels_of_small = std::max<int64_t>(1, small.sizes[2] * small.sizes[3]);
  int64_t work = adaptive ? large.sizes[2] * large.sizes[3] / pixels_of_small
                          : window.kernel[0] * window.kernel[1];
  if (backward) work = 4;
  Arguments arguments;
  arguments.write(written).read(read);
  launch(stream, {kind, to.dtype, to.dtype}, arguments, large, small, window, divisor,
         count_padding, pixels(written, work + 1));
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    for (auto kind :
         {PoolKernel::kMax, PoolKernel::kMaxBackward, PoolKernel::kAverage,
          PoolKernel::kAverageBackward, PoolKernel::kAdaptive, PoolKernel::kAdaptiveBackward}) {
      PackEntry::put(add, PoolKernel{kind, dtype, GRAFT_FLOAT32});
    }
  }
});

}  // namespace

void max_pool2d(Stream& stream, const TensorView& output, const TensorView& indices,
                const TensorView& input, const PoolWindow& window) {
  if (offer(stream, Operation::max_pool2d, writes(output, indices), reads(input),
            integers(window.kernel, window.stride, window.padding, window.dilation)))
    return;
  if (output.count() == 0) return;
  const TensorView from = image(input);
  if (PlanePool(window).max(stream, image(output), image(indices), from)) return;
  const bool stage = !same_strides(output, indices);
  StagedOutput values(stream, output, stage), positions(stream, indices, stage);
  const TensorView to = image(values.view()), at = image(positions.view());
  Arguments arguments;
  arguments.write(to).write(at).read(from);
  launch(stream, {PoolKernel::kMax, input.dtype, input.dtype}, arguments, from, to, window, 0,
         false, pixels(to, 2 * window.kernel[0] * window.kernel[1]));
  values.finish();
  positions.finish();
}

void max_pool2d_backward(Stream& stream, const TensorView& grad_input,
                         const TensorView& grad_output, const TensorView& indices,
                         const PoolWindow& window) {
  if (offer(stream, Operation::max_pool2d_backward, writes(grad_input), reads(grad_output, indices),
            integers(window.kernel, window.stride, window.padding, window.dilation)))
    return;
  if (grad_input.count() == 0) return;
  if (PlanePool(window).max_backward(stream, image(grad_input), image(grad_output),
                                     image(indices))) {
    return;
  }
  const TensorView given = image(grad_input);
  const bool dense = given.strides[2] == given.sizes[3] * given.strides[3];
  const bool half = is_half(grad_input.dtype);
  TensorView target = given;
  std::optional<Workspace> memory;
  if (half || !dense) {
    // Sums of half types are taken in float32.
    target.dtype = half ? GRAFT_FLOAT32 : given.dtype;
    if (!dense) target = contiguous_like(given, 0, target.dtype);
    memory.emplace(stream, extent_bytes(target));
    target.address = memory->address();
  }
  const bool stage = !same_strides(grad_output, indices);
  StagedInput gradient(stream, grad_output, stage), positions(stream, indices, stage);
  const TensorView from = image(gradient.view()), at = image(positions.view());
  const PoolKernel kernel{PoolKernel::kMaxBackward, grad_output.dtype, target.dtype};
  const int64_t lines = target.sizes[0] * blocks_of(target.sizes[1], kPoolBackwardBlock);
  const WorkSplit split = split_work(lines, kPoolBackwardBlock * target.sizes[2] * target.sizes[3]);
  Arguments arguments;
  arguments.update(target).read(from).read(at);
  append_checker(arguments, stream);
  launch(stream, kernel, arguments, target, from, window, 0, false, split);
  if (memory) copy(stream, given, target);
}

void avg_pool2d(Stream& stream, const TensorView& output, const TensorView& input,
                const PoolWindow& window, bool count_include_pad, int64_t divisor) {
  if (offer(stream, Operation::avg_pool2d, writes(output), reads(input),
            integers(window.kernel, window.stride, window.padding, count_include_pad, divisor)))
    return;
  average(stream, PoolKernel::kAverage, output, input, window, divisor, count_include_pad);
}

void avg_pool2d_backward(Stream& stream, const TensorView& grad_input,
                         const TensorView& grad_output, const PoolWindow& window,
                         bool count_include_pad, int64_t divisor) {
  if (offer(stream, Operation::avg_pool2d_backward, writes(grad_input), reads(grad_output),
            integers(window.kernel, window.stride, window.padding, count_include_pad, divisor)))
    return;
  average(stream, PoolKernel::kAverageBackward, grad_input, grad_output, window, divisor,
          count_include_pad);
}

void adaptive_avg_pool2d(Stream& stream, const TensorView& output, const TensorView& input) {
  if (offer(stream, Operation::adaptive_avg_pool2d, writes(output), reads(input))) return;
  average(stream, PoolKernel::kAdaptive, output, input, {}, 0, false);
}

void adaptive_avg_pool2d_backward(Stream& stream, const TensorView& grad_input,
                                  const TensorView& grad_output) {
  if (offer(stream, Operation::adaptive_avg_pool2d_backward, writes(grad_input),
            reads(grad_output)))
    return;
  average(stream, PoolKernel::kAdaptiveBackward, grad_input, grad_output, {}, 0, false);
}

}  // namespace graft
