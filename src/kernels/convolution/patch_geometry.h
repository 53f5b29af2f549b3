// src/kernels/convolution/patch_geometry.h: what a convolution or its gradient sums: patches of a
// tensor.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"

namespace graft {

// Position p and tap t of a patch meet the input at p * step + start + t * reach, in each of the
// three spatial dimensions; what lies outside of the input counts as zero. reach may be negative.
struct PatchGrid {
  int64_t step[3], start[3], reach[3];
};

// output[n, o, p] = bias[o] + the sum over c and t of factor[o, c, t] * input[n, c, p and t], for
// every group of channels. All views have rank 5 (spatial.h). What of it is
// written, output or factor, depends on the function that takes it.
struct PatchProduct {
  TensorView input, output;
  TensorView factor;        // of the first group
  int64_t factor_step = 0;  // from a group's factor to the next one's, in elements
  int64_t groups = 1;
  const TensorView* bias = nullptr;  // [o], of output's dtype
  PatchGrid grid{};

  int64_t channels() const { return factor.sizes[1]; }  // of a group, as outs()
  int64_t outs() const { return factor.sizes[0]; }
  int64_t taps() const { return factor.sizes[2] * factor.sizes[3] * factor.sizes[4]; }
  int64_t positions() const { return output.sizes[2] * output.sizes[3] * output.sizes[4]; }
};

}  // namespace graft
