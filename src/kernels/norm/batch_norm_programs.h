// src/kernels/norm/batch_norm_programs.h: the folding programs of batch normalisation.
#pragma once

#include "kernels/reduce/fold_program.h"

namespace graft {

// What a call has besides its images; vectors have one dtype, sums the wide one.
struct BatchNormOptions {
  bool weight = false;
  bool bias = false;
  bool running = false;
  graft_dtype wide = GRAFT_FLOAT32;
};

// From partial moments (moments.h). Scalars {epsilon, momentum}. Kept inputs:
// running mean and variance (when running), weight, bias (when present). Outputs: scale, shift and
// center (wide; for scale * (x - center) + shift), save_mean, save_invstd, then, when running, the
// running mean and variance moved, and as they were.
FoldProgram batch_norm_statistics(const BatchNormOptions& options, graft_dtype save,
                                  graft_dtype running, graft_dtype weight);

// Scale and shift from given statistics. Scalars {epsilon}. Kept inputs: mean, variance, weight and
// bias when present.
FoldProgram batch_norm_given(const BatchNormOptions& options, graft_dtype statistics,
                             graft_dtype weight);

// Partial sums of the gradient and of gradient * (x - mean). Inputs: gradient, x; kept: mean.
FoldProgram batch_norm_gradient_sums(graft_dtype gradient, graft_dtype input, graft_dtype mean,
                                     graft_dtype wide);

// Those partial sums added up, as they are.
FoldProgram batch_norm_whole_sums(graft_dtype wide);

// From those sums: gradients of weight and bias (wide), then the factors f with
// grad_input = f0 * gradient + f1 * (x - f3) + f2. Kept inputs: mean, spread, weight when present.
// Scalars {epsilon, elements per channel}. train: spread is 1 / deviation; else a variance.
FoldProgram batch_norm_gradients(const BatchNormOptions& options, bool train, graft_dtype mean,
                                 graft_dtype weight);

}  // namespace graft
