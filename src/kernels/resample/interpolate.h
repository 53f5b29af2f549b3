// src/kernels/resample/interpolate.h: images made larger or smaller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// As torch.nn.functional.interpolate describes it; the numbers are PyTorch's. The last
// scales.size() dimensions change; a scale is the factor that the caller gave, if any.
struct Resizing {
  enum Filter : uint8_t {
    kNearest,
    kNearestExact,
    kLinear,
    kCubic,
    kLinearAntialias,
    kCubicAntialias,
    kLanczosAntialias
  } filter = kNearest;
  bool align_corners = false;
  std::span<const std::optional<double>> scales;
};

// Every element of output is written. Any strides; both of one dtype: floating, complex or uint8,
// any for the two nearest filters. uint8 images of two dimensions are summed in whole numbers.
// Throws Error: INVALID_ARGUMENT for sizes or dtypes that differ elsewhere, UNSUPPORTED for others.
GRAFT_EXPORT void interpolate(Stream& stream, const TensorView& output, const TensorView& input,
                              const Resizing& resizing);
// Its gradient: from grad_output, as output, to grad_input, as input.
GRAFT_EXPORT void interpolate_backward(Stream& stream, const TensorView& grad_input,
                                       const TensorView& grad_output, const Resizing& resizing);

}  // namespace graft
