// src/kernels/training/optimizer.h: steps of optimizers over lists of tensors, a launch for several
// at once.
#pragma once

#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Which formula, and with it which states a parameter has: kSgd none, kMomentum its buffer, kAdam
// the two moments, kAmsgrad also the largest second moment, kAdagrad the sum of squares.
enum class OptimizerRule : uint8_t { kSgd, kMomentum, kAdam, kAmsgrad, kAdagrad };
GRAFT_EXPORT int states_of(OptimizerRule rule);
inline bool counts_steps(OptimizerRule rule) { return rule >= OptimizerRule::kAdam; }

// One parameter with all that belongs to it. Flat views of rank 1 that list their elements in one
// order, of one length and dtype; step is one float32 on the device, read where the rule counts
// steps.
struct OptimizerTensors {
  TensorView parameter;
  TensorView gradient;
  TensorView states[3];
  TensorView step;
};

// What all parameters share. Numbers that the rule does not name are not looked at.
struct OptimizerSettings {
  OptimizerRule rule = OptimizerRule::kSgd;
  double rate = 0;
  const TensorView* rate_tensor = nullptr;     // one float32 or float64, in place of rate
  const TensorView* gradient_scale = nullptr;  // one float32: gradients are divided by it, in place
  const TensorView* found_inf = nullptr;       // one float32: unless it is 0, nothing is written
  double weight_decay = 0;
  bool ascent = false;  // steps along the gradient, not against it

  double momentum = 0, dampening = 0;         // kMomentum
  bool nesterov = false, first_step = false;  // kMomentum; first: the buffer is not read
  double beta1 = 0, beta2 = 0;                // kAdam, kAmsgrad
  bool decoupled = false;                     // kAdam, kAmsgrad: decay as AdamW
  double epsilon = 0;                         // kAdam, kAmsgrad, kAdagrad
  double rate_decay = 0;                      // kAdagrad
};

// One step of every parameter, in place: the formulas of torch.optim's documentation, in float32
// (float64 for float64), bias corrections in float64.
// Throws UNSUPPORTED for dtypes that are not floating and for devices without a compiler.
GRAFT_EXPORT void optimizer_step(Stream& stream, std::span<const OptimizerTensors> parameters,
                                 const OptimizerSettings& settings);

}  // namespace graft
