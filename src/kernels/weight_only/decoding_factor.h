// src/kernels/weight_only/decoding_factor.h: the first factor as decoding kernels of CPU-like
// devices read it, in integers or in floats.
#pragma once

#include <optional>

#include "kernels/launch/arguments.h"
#include "kernels/weight_only/activation.h"
#include "kernels/weight_only/integer_activation.h"

namespace graft {

// Integers for a factor of half precision where the device's language has vectors and the groups
// allow it. Lives as long as the commands of its call are queued.
class DecodingFactor {
 public:
  // a [m, k]; scales of its product's weight.
  DecodingFactor(Stream& stream, const TensorView& a, WordKind kind, const WeightScales& scales);

  graft_dtype dtype() const { return integers_ ? GRAFT_INT16 : GRAFT_FLOAT32; }
  int64_t depth() const { return numbers_ ? numbers_->depth() : k_; }  // of a row, in elements
  int64_t group() const { return group_; }  // elements that a sum in its own unit has
  int64_t groups() const { return (k_ + group_ - 1) / group_; }

  // The factor, the sums of its groups, and of integers their steps.
  void append(Arguments& arguments) const;

 private:
  int64_t k_, group_;
  std::optional<IntegerActivation> integers_;
  std::optional<Activation> numbers_;
};

}  // namespace graft
