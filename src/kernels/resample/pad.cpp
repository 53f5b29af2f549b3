// src/kernels/resample/pad.cpp: tensors padded with elements of their own.
#include "kernels/resample/pad.h"

#include <vector>

#include "kernels/operation/offer.h"
#include "kernels/resample/resample.h"
#include "kernels/resample/upsample.h"

namespace graft {
namespace {

std::vector<LinearMap> maps_of(const TensorView& inner, const Padding& padding) {
  const auto make = padding.mode == Padding::kReflect ? &reflection_taps : &replication_taps;
  std::vector<LinearMap> maps;
  int d = inner.rank - static_cast<int>(padding.edges.size());
  for (const auto& [before, after] : padding.edges) {
    maps.push_back(make(inner.sizes[d++], before, after));
  }
  return maps;
}

auto described(const Padding& padding) {
  return [&](VendorCall& to) {
    to.integers({padding.mode});
    for (const Padding::Edge& edge : padding.edges) to.integers({edge.before});
    for (const Padding::Edge& edge : padding.edges) to.integers({edge.after});
  };
}

}  // namespace

void pad(Stream& stream, const TensorView& output, const TensorView& input,
         const Padding& padding) {
  if (output.count() == 0) return;
  if (offer(stream, Operation::pad, writes(output), reads(input), described(padding))) return;
  resample(stream, output, input, maps_of(input, padding));
}

void pad_backward(Stream& stream, const TensorView& grad_input, const TensorView& grad_output,
                  const Padding& padding) {
  if (grad_input.count() == 0) return;
  if (offer(stream, Operation::pad_backward, writes(grad_input), reads(grad_output),
            described(padding)))
    return;
  resample_back(stream, grad_input, grad_output, maps_of(grad_input, padding));
}

}  // namespace graft
