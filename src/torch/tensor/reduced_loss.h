// src/torch/tensor/reduced_loss.h: from the losses of samples to what a loss operator returns.
#pragma once

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include "kernels/loss/loss.h"

namespace graft::binding {

// Margin and likelihood losses take every other number for a sum.
inline LossReduction reduction_of(int64_t reduction) {
  const bool known = reduction == at::Reduction::None || reduction == at::Reduction::Mean;
  return known ? static_cast<LossReduction>(reduction) : LossReduction::kSum;
}

// The losses themselves, their mean or their sum.
inline at::Tensor reduced(const at::Tensor& losses, LossReduction reduction) {
  switch (reduction) {
    case LossReduction::kMean:
      return losses.mean();
    case LossReduction::kSum:
      return losses.sum();
    default:
      return losses;
  }
}

}  // namespace graft::binding
