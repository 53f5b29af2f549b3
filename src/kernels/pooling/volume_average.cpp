// src/kernels/pooling/volume_average.cpp: averages of boxes of volumes, with gradients.
#include "kernels/pooling/volume_average.h"

#include <vector>

#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"
#include "kernels/pooling/window_average.h"
#include "kernels/resample/resample.h"

namespace graft {
namespace {

using Maps = std::vector<LinearMap>;

// From large, which has boxes, to small, which has an element for each.
Maps maps_of(const TensorView& large, const TensorView& small, const AverageBoxes& boxes) {
  Maps maps;
  for (int d = 0; d < 3; ++d) {
    maps.push_back(average_taps({large.sizes[large.rank - 3 + d], small.sizes[small.rank - 3 + d],
                                 boxes.kernel[d], boxes.stride[d], boxes.padding[d],
                                 boxes.count_padding, boxes.divisor != 0}));
  }
  if (boxes.divisor != 0) {
    for (Tap& tap : maps.front().list) tap.weight /= static_cast<double>(boxes.divisor);
  }
  return maps;
}

Maps adaptive_maps(const TensorView& large, const TensorView& small) {
  Maps maps;
  for (int d = -3; d < 0; ++d) {
    maps.push_back(adaptive_average_taps(large.sizes[large.rank + d], small.sizes[small.rank + d]));
  }
  return maps;
}

auto described(const AverageBoxes& boxes) {
  return integers(boxes.kernel, boxes.stride, boxes.padding, boxes.count_padding, boxes.divisor);
}

// Without boxes there is nothing to spread.
bool cleared(Stream& stream, const TensorView& grad_input, const TensorView& grad_output) {
  if (grad_output.count() == 0) fill(stream, grad_input, Scalar::of(grad_input.dtype, 0));
  return grad_output.count() == 0 || grad_input.count() == 0;
}

}  // namespace

void avg_pool3d(Stream& stream, const TensorView& output, const TensorView& input,
                const AverageBoxes& boxes) {
  if (output.count() == 0) return;
  if (offer(stream, Operation::avg_pool3d, writes(output), reads(input), described(boxes))) return;
  resample(stream, output, input, maps_of(input, output, boxes));
}

void avg_pool3d_backward(Stream& stream, const TensorView& grad_input,
                         const TensorView& grad_output, const AverageBoxes& boxes) {
  if (cleared(stream, grad_input, grad_output)) return;
  if (offer(stream, Operation::avg_pool3d_backward, writes(grad_input), reads(grad_output),
            described(boxes)))
    return;
  resample_back(stream, grad_input, grad_output, maps_of(grad_input, grad_output, boxes));
}

void adaptive_avg_pool3d(Stream& stream, const TensorView& output, const TensorView& input) {
  if (output.count() == 0) return;
  if (offer(stream, Operation::adaptive_avg_pool3d, writes(output), reads(input))) return;
  resample(stream, output, input, adaptive_maps(input, output));
}

void adaptive_avg_pool3d_backward(Stream& stream, const TensorView& grad_input,
                                  const TensorView& grad_output) {
  if (cleared(stream, grad_input, grad_output)) return;
  if (offer(stream, Operation::adaptive_avg_pool3d_backward, writes(grad_input),
            reads(grad_output)))
    return;
  resample_back(stream, grad_input, grad_output, adaptive_maps(grad_input, grad_output));
}

}  // namespace graft
