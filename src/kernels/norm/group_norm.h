// src/kernels/norm/group_norm.h: normalisation of groups of channels, with its gradients.
#pragma once

#include <cstdint>

#include "kernels/norm/normalization.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// What every call says: images are contiguous and seen as [n, channels, length]; groups divides
// channels; mean and rstd are contiguous [n, groups]; weight and bias [channels], contiguous, of
// any floating dtype, null: none. Sums in float32 (float64 for float64), in an order that the sizes
// alone decide.
struct GroupShape {
  int64_t n = 0;
  int64_t channels = 0;
  int64_t length = 0;
  int64_t groups = 1;
};

// output = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(biased variance + epsilon).
GRAFT_EXPORT void group_norm(Stream& stream, const TensorView& output, const TensorView& mean,
                             const TensorView& rstd, const TensorView& input,
                             const TensorView* weight, const TensorView* bias,
                             const GroupShape& shape, double epsilon);

// Its gradients from the saved mean and rstd; any of gradients may be null.
GRAFT_EXPORT void group_norm_backward(Stream& stream, const NormGradients& gradients,
                                      const TensorView& grad_output, const TensorView& input,
                                      const TensorView& mean, const TensorView& rstd,
                                      const TensorView* weight, const GroupShape& shape);

}  // namespace graft
