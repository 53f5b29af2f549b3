// src/kernels/resample/interpolate.cpp: images made larger or smaller.
#include "kernels/resample/interpolate.h"

#include <algorithm>
#include <vector>

#include "kernels/operation/offer.h"
#include "kernels/resample/resample.h"
#include "kernels/resample/upsample.h"

namespace graft {
namespace {

LinearMap map_of(const Interpolation& line, Resizing::Filter filter) {
  switch (filter) {
    case Resizing::kNearest:
      return nearest_taps(line);
    case Resizing::kNearestExact:
      return nearest_exact_taps(line);
    case Resizing::kLinear:
      return linear_taps(line);
    case Resizing::kCubic:
      return cubic_taps(line);
    case Resizing::kLinearAntialias:
      return antialias_taps(line, Filter::kLinear);
    case Resizing::kCubicAntialias:
      return antialias_taps(line, Filter::kCubic);
    default:
      return antialias_taps(line, Filter::kLanczos);
  }
}

// One map for each of the last dimensions of input, which becomes output.
std::vector<LinearMap> maps_of(const TensorView& output, const TensorView& input,
                               const Resizing& resizing) {
  std::vector<LinearMap> maps;
  int d = input.rank - static_cast<int>(resizing.scales.size());
  const bool wide = input.dtype == GRAFT_FLOAT64 || input.dtype == GRAFT_UINT8;
  for (const std::optional<double>& scale : resizing.scales) {
    maps.push_back(map_of({input.sizes[d], output.sizes[d], resizing.align_corners, scale, wide},
                          resizing.filter));
    ++d;
  }
  return maps;
}

auto described(const Resizing& resizing) {
  return [&](VendorCall& to) {
    to.integers({resizing.filter, resizing.align_corners});
    for (const std::optional<double>& scale : resizing.scales) to.numbers({scale.value_or(0)});
  };
}

}  // namespace

void interpolate(Stream& stream, const TensorView& output, const TensorView& input,
                 const Resizing& resizing) {
  if (output.count() == 0) return;
  if (offer(stream, Operation::interpolate, writes(output), reads(input), described(resizing)))
    return;
  const std::vector<LinearMap> maps = maps_of(output, input, resizing);
  const bool picks = std::ranges::all_of(maps, [](const LinearMap& map) { return map.picks(); });
  // PyTorch interpolates bytes in images alone.
  if (input.dtype == GRAFT_UINT8 && maps.size() == 2 && !picks) {
    return resample_bytes(stream, output, input, maps);
  }
  resample(stream, output, input, maps);
}

void interpolate_backward(Stream& stream, const TensorView& grad_input,
                          const TensorView& grad_output, const Resizing& resizing) {
  if (grad_input.count() == 0) return;
  if (offer(stream, Operation::interpolate_backward, writes(grad_input), reads(grad_output),
            described(resizing)))
    return;
  resample_back(stream, grad_input, grad_output, maps_of(grad_output, grad_input, resizing));
}

}  // namespace graft
