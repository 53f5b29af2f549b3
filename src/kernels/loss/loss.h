// src/kernels/loss/loss.h: the negative log-likelihood loss and its gradient.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// torch's own numbers: the int64_t of its schema can be cast.
enum class LossReduction { kNone = 0, kMean = 1, kSum = 2 };

// input is [n, c], [c] or [n, c, spatial...] with any strides, target int64 (or uint8) [n], [] or
// [n, spatial...], weight (may be null) contiguous [c] of input's dtype. An element whose target
// is ignore_index adds nothing. Any other target outside 0 <= t < c is clamped and reported: the
// next synchronisation of the stream throws INVALID_ARGUMENT with the op and the target.

// kNone: output has target's sizes (any strides); otherwise output and total_weight have one
// element. total_weight = sum of the weights of the elements that count (0 for kNone). kMean over
// nothing is NaN.
GRAFT_EXPORT void nll_loss(Stream& stream, const TensorView& output, const TensorView& total_weight,
                           const TensorView& input, const TensorView& target,
                           const TensorView* weight, LossReduction reduction, int64_t ignore_index);

// Every element of grad_input is written: -weight[t] * grad_output (/ total_weight for kMean) at
// the target, 0 elsewhere.
GRAFT_EXPORT void nll_loss_backward(Stream& stream, const TensorView& grad_input,
                                    const TensorView& grad_output, const TensorView& target,
                                    const TensorView* weight, const TensorView& total_weight,
                                    LossReduction reduction, int64_t ignore_index);

}  // namespace graft
