// src/kernels/norm/normalization.h: batch and layer normalisation with their gradients.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Everywhere: a null view means "not given" (inputs) or "not wanted" (outputs); sums are taken in
// float32 (float64 for float64 inputs); means and variances as moments.h says, with its bounds.

// ---- Batch normalisation over channels: dimension 1 of tensors [n, c, spatial...].
// REQUIRES: image tensors are dense and row-major (NCHW) or dense with dimension 1 innermost
// (channels-last), all of one call in the same layout; INVALID_ARGUMENT says so otherwise. Vectors
// [c] are contiguous and all of one call have one dtype, which may differ from the images'.

// Where running statistics go that do not move in their own memory.
struct MovedStatistics {
  const TensorView* mean = nullptr;
  const TensorView* variance = nullptr;
};

// output = (x - mean) * invstd * weight + bias with the statistics of the batch, which go to
// save_mean and save_invstd = 1 / sqrt(biased variance + epsilon). The running statistics, where
// given, move by momentum: running = (1 - momentum) * running + momentum * batch, with the unbiased
// variance; they are as before if it throws. moved: REQUIRES both of it or none.
GRAFT_EXPORT void batch_norm_train(Stream& stream, const TensorView& output,
                                   const TensorView& save_mean, const TensorView& save_invstd,
                                   const TensorView* running_mean, const TensorView* running_var,
                                   const TensorView& input, const TensorView* weight,
                                   const TensorView* bias, double momentum, double epsilon,
                                   const MovedStatistics& moved = {});

// The same with given statistics: invstd = 1 / sqrt(running_var + epsilon).
GRAFT_EXPORT void batch_norm_inference(Stream& stream, const TensorView& output,
                                       const TensorView& input, const TensorView* weight,
                                       const TensorView* bias, const TensorView& running_mean,
                                       const TensorView& running_var, double epsilon);

struct NormGradients {
  const TensorView* input = nullptr;
  const TensorView* weight = nullptr;
  const TensorView* bias = nullptr;
};

// Gradients of either. train: mean and spread are save_mean and save_invstd; otherwise they are the
// running mean and the running variance (epsilon is read only then).
GRAFT_EXPORT void batch_norm_backward(Stream& stream, const NormGradients& gradients,
                                      const TensorView& grad_output, const TensorView& input,
                                      const TensorView* weight, const TensorView& mean,
                                      const TensorView& spread, bool train, double epsilon);

// Steps of the same for images whose statistics are joined with other processes' between them.
// Vectors have the dtype that sums are taken in. Nothing is written for images without elements.

// sum = sum of grad_output, along = sum of grad_output * (input - mean). mean may have any dtype.
GRAFT_EXPORT void batch_norm_sums(Stream& stream, const TensorView& sum, const TensorView& along,
                                  const TensorView& grad_output, const TensorView& input,
                                  const TensorView& mean);

// output = scale * x + slope * (y - center) + shift; without y, of x's dtype, and slope:
// scale * (x - center) + shift. center may be null: 0.
GRAFT_EXPORT void batch_norm_affine(Stream& stream, const TensorView& output, const TensorView& x,
                                    const TensorView& scale, const TensorView* y,
                                    const TensorView* slope, const TensorView& shift,
                                    const TensorView* center);

// ---- Layer normalisation of rows: tensors are contiguous and seen as [rows, n] (rows * n elements
// whatever their rank); weight and bias have n elements; mean and rstd have rows.

// output = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(biased variance + epsilon).
GRAFT_EXPORT void layer_norm(Stream& stream, const TensorView& output, const TensorView* mean,
                             const TensorView* rstd, const TensorView& input,
                             const TensorView* weight, const TensorView* bias, int64_t rows,
                             int64_t n, double epsilon);

// Its gradients from the saved mean and rstd; any of gradients may be null.
GRAFT_EXPORT void layer_norm_backward(Stream& stream, const NormGradients& gradients,
                                      const TensorView& grad_output, const TensorView& input,
                                      const TensorView& mean, const TensorView& rstd,
                                      const TensorView* weight, int64_t rows, int64_t n);

}  // namespace graft
