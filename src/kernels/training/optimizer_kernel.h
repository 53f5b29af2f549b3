// src/kernels/training/optimizer_kernel.h: the kernel of one optimizer step over a group of
// tensors.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "kernels/launch/list_launch.h"
#include "kernels/training/optimizer.h"

namespace graft {

// The launch's numbers, in the order in which the kernel declares them.
inline constexpr int kOptimizerNumbers = 8;
struct OptimizerNumbers {
  double values[kOptimizerNumbers];
};

// The order of its parameters: the lists (list_launch.h) of parameters, gradients, states, then
// steps where the rule counts them; rate tensor, gradient scale, found_inf where given; the numbers
// of optimizer_numbers() as float64; what GroupShare declares.
struct OptimizerKernel {
  OptimizerRule rule = OptimizerRule::kSgd;
  graft_dtype dtype = GRAFT_FLOAT32;
  bool rate_tensor = false;
  graft_dtype rate_dtype = GRAFT_FLOAT32;
  bool scaled = false;   // a gradient scale is given
  bool guarded = false;  // found_inf is given
  int slots = kGroupSlots;
  bool lanes = false;  // as lanes.h says

  int lists() const { return 2 + states_of(rule) + (counts_steps(rule) ? 1 : 0); }
  // Parameters beside the lists.
  ParameterCounts shared() const { return {rate_tensor + scaled + guarded, kOptimizerNumbers}; }

  std::string key() const;
  ir::Kernel build() const;
};

OptimizerNumbers optimizer_numbers(const OptimizerSettings& settings);

}  // namespace graft
