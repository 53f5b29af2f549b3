// src/kernels/resample/pad.h: tensors padded with elements of their own.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// How the last edges.size() dimensions grow; negative numbers take away. kReflect leaves out the
// edge itself. REQUIRES: kReflect: before and after are below the dimension's length.
struct Padding {
  enum Mode : uint8_t { kReflect, kReplicate } mode = kReflect;
  struct Edge {
    int64_t before = 0;
    int64_t after = 0;
  };
  std::span<const Edge> edges;
};

// Every element of output is written. Any strides and dtype, the same for both. Throws Error
// INVALID_ARGUMENT for sizes that do not fit.
GRAFT_EXPORT void pad(Stream& stream, const TensorView& output, const TensorView& input,
                      const Padding& padding);
// Its gradient: sums grad_output, as output, into grad_input, as input. Not bool.
GRAFT_EXPORT void pad_backward(Stream& stream, const TensorView& grad_input,
                               const TensorView& grad_output, const Padding& padding);

}  // namespace graft
