// src/kernels/pooling/planes.cpp: pooling of images that do not lie channels last.
#include "kernels/pooling/planes.h"

#include <algorithm>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

bool channels_last(const TensorView& view) { return view.sizes[1] >= 4 && view.strides[1] == 1; }

// Planes follow one another over the ends of images, too.
bool evenly_spaced(const TensorView& view) {
  return view.sizes[0] == 1 || view.strides[0] == view.sizes[1] * view.strides[1];
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    for (auto kind : {PlanePoolKernel::kMax, PlanePoolKernel::kAverage,
                      PlanePoolKernel::kAverageBackward, PlanePoolKernel::kAdaptive,
                      PlanePoolKernel::kAdaptiveBackward, PlanePoolKernel::kMaxBackward}) {
      for (bool clipped : {false, true}) {
        if (clipped && kind > PlanePoolKernel::kAverageBackward) continue;
        const bool sums = kind == PlanePoolKernel::kMaxBackward;
        PackEntry::put(add, PlanePoolKernel{kind, sums ? dtype : GRAFT_FLOAT32,
                                            sums ? GRAFT_FLOAT32 : dtype, clipped});
      }
    }
  }
});

}  // namespace

WorkSplit PlanePool::rows(const TensorView& written, int64_t work) const {
  return split_work(written.sizes[0] * written.sizes[1] * written.sizes[2],
                    written.sizes[3] * std::max<int64_t>(1, work));
}

bool PlanePool::fits(const TensorView& written, const TensorView& read,
                     const WorkSplit& rows) const {
  int64_t reach = (rows.per_item / written.sizes[2] + 2) * read.strides[1];
  for (int d = 0; d < 2; ++d) {
    const int64_t window = window_.padding[d] + window_.kernel[d] * window_.dilation[d];
    const int64_t side = std::max(read.sizes[2 + d], written.sizes[2 + d]) + window;
    if (side >= kPlaneSide || window_.stride[d] >= kPlaneSide) return false;
    reach += (read.sizes[2 + d] + window) * read.strides[2 + d];
  }
  return rows.per_item < kPlaneSide && reach < kPlaneReach;
}

bool PlanePool::clipped(const TensorView& large, const TensorView& small, int64_t margin) const {
  for (int d = 0; d < 2; ++d) {
    const int64_t first = -window_.padding[d], pad = margin * window_.padding[d];
    const int64_t last = first + (small.sizes[2 + d] - 1) * window_.stride[d] +
                         (window_.kernel[d] - 1) * window_.dilation[d];
    if (first < -pad || last >= large.sizes[2 + d] + pad) return true;
  }
  return false;
}

void PlanePool::launch(Stream& stream, PlanePoolKernel kernel, const TensorView& written,
                       const TensorView* indices, const TensorView& read,
                       const WorkSplit& rows) const {
  // The lanes of a vector lie apart: CPUs gather 32 bits at once, but not 16.
  const graft_dtype dtype = is_half(read.dtype) ? GRAFT_FLOAT32 : read.dtype;
  StagedInput from(stream, read, !evenly_spaced(read), dtype);
  const TensorView& source = from.view();
  kernel.dtype = dtype;
  kernel.written = written.dtype;
  Arguments arguments;
  arguments.write(written);
  if (indices != nullptr) arguments.write(*indices);
  arguments.read(source);
  arguments.index(rows.lines).index(rows.per_item).index(written.sizes[1]);
  arguments.index(source.strides[0]).index(source.strides[1]).index(divisor_);
  auto index32 = [&](int64_t value) {
    arguments.scalar(Scalar::of(static_cast<int32_t>(value)), sizeof(int32_t));
  };
  for (const int64_t* pair : {written.sizes + 2, source.sizes + 2, source.strides + 2,
                              window_.kernel, window_.stride, window_.padding, window_.dilation}) {
    index32(pair[0]);
    index32(pair[1]);
  }
  index32(count_padding_ ? 1 : 0);
  launch_kernel(stream, kernel, rows.grid, arguments);
}

bool PlanePool::max(Stream& stream, const TensorView& output, const TensorView& indices,
                    const TensorView& input) const {
  const WorkSplit split = rows(output, window_.kernel[0] * window_.kernel[1]);
  if (channels_last(input) || !fits(output, input, split)) return false;
  StagedOutput values(stream, output), positions(stream, indices);
  launch(stream, {.kind = PlanePoolKernel::kMax, .clipped = clipped(input, output, 0)},
         values.view(), &positions.view(), input, split);
  values.finish();
  positions.finish();
  return true;
}

bool PlanePool::average(Stream& stream, const PlanePoolKernel& kernel, const TensorView& written,
                        const TensorView& read, int64_t work) const {
  const WorkSplit split = rows(written, work);
  if (!fits(written, read, split)) return false;
  StagedOutput to(stream, written);
  launch(stream, kernel, to.view(), nullptr, read, split);
  to.finish();
  return true;
}

bool PlanePool::average(Stream& stream, bool backward, const TensorView& written,
                        const TensorView& read) const {
  const TensorView& large = backward ? written : read;
  const TensorView& small = backward ? read : written;
  if (channels_last(large)) return false;
  PlanePool pool = *this;
  const int64_t count = window_.kernel[0] * window_.kernel[1];
  if (divisor_ == 0 && !clipped(large, small, count_padding_ ? 1 : 0)) pool.divisor_ = count;
  if (!backward) {
    const PlanePoolKernel kernel{.kind = PlanePoolKernel::kAverage,
                                 .clipped = clipped(large, small, 0)};
    return pool.average(stream, kernel, written, read, count);
  }
  int64_t windows = 1;
  for (int d = 0; d < 2; ++d) {
    windows *= (window_.kernel[d] + window_.stride[d] - 1) / window_.stride[d];
  }
  const PlanePoolKernel kernel{.kind = PlanePoolKernel::kAverageBackward,
                               .clipped = pool.divisor_ == 0};
  return pool.average(stream, kernel, written, read, windows);
}

bool PlanePool::adaptive(Stream& stream, bool backward, const TensorView& written,
                         const TensorView& read) {
  const TensorView& large = backward ? written : read;
  const TensorView& small = backward ? read : written;
  if (channels_last(large)) return false;
  PoolWindow window;
  bool even = true;
  for (int d = 0; d < 2; ++d) {
    const int64_t big = large.sizes[2 + d], little = small.sizes[2 + d];
    if (big * little >= kPlaneSide) return false;
    even = even && big % little == 0;
    window.kernel[d] = window.stride[d] = big / little;
  }
  if (even) return PlanePool(window).average(stream, backward, written, read);
  for (int d = 0; d < 2; ++d) {
    window.kernel[d] = (read.sizes[2 + d] - 1) / written.sizes[2 + d] + 2;
    window.stride[d] = 1;
  }
  const auto kind = backward ? PlanePoolKernel::kAdaptiveBackward : PlanePoolKernel::kAdaptive;
  return PlanePool(window).average(stream, {.kind = kind}, written, read,
                                   window.kernel[0] * window.kernel[1]);
}

bool PlanePool::max_backward(Stream& stream, const TensorView& grad_input,
                             const TensorView& grad_output, const TensorView& indices) const {
  if (channels_last(grad_input)) return false;
  const graft_dtype dtype = grad_input.dtype;
  // Sums of half types are taken in float32.
  StagedOutput sums(stream, grad_input, !grad_input.contiguous(),
                    is_half(dtype) ? GRAFT_FLOAT32 : dtype);
  const TensorView& target = sums.view();
  StagedInput from(stream, grad_output), at(stream, indices);
  const int64_t large = target.sizes[2] * target.sizes[3];
  const int64_t small = grad_output.sizes[2] * grad_output.sizes[3];
  const WorkSplit split = split_work(target.sizes[0] * target.sizes[1], large + 2 * small);
  const PlanePoolKernel kernel{PlanePoolKernel::kMaxBackward, dtype, target.dtype, false};
  Arguments arguments;
  arguments.update(target).read(from.view()).read(at.view());
  append_checker(arguments, stream);
  arguments.index(split.lines).index(split.per_item).index(large).index(small);
  launch_kernel(stream, kernel, split.grid, arguments);
  sums.finish();
  return true;
}

}  // namespace graft
