// src/torch/ops/dropout.cpp: dropout with its mask, and its gradient.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>

#include "kernels/random/random.h"
#include "operators.h"
#include "torch/device/fallback_count.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

// The fallback runs no random operator without a generator; bernoulli_ has one.
void by_mask(at::Tensor& output, at::Tensor& mask, const at::Tensor& input, double p) {
  mask.bernoulli_(1 - p);
  output.copy_(input.mul(mask).mul_(p < 1 ? 1 / (1 - p) : 0.0));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(native_dropout)(const at::Tensor& input, double p,
                                                                  std::optional<bool> train) {
  // As the CPU, which gives a mask of no elements the input's dtype, whatever it and p are.
  if (input.numel() == 0) return {at::empty_like(input), at::empty_like(input)};
  if (train.has_value() && !*train) {
    return {input.clone(), at::ones_like(input, at::kBool)};
  }
  const double kept = 1 - p;
  TORCH_CHECK(0 <= kept && kept <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", kept);
  TORCH_CHECK(input.is_floating_point() || input.is_complex(), "result type ",
              c10::get_default_dtype_as_scalartype(), " can't be cast to the desired output type ",
              input.scalar_type());
  at::Tensor output = at::empty_like(input);
  at::Tensor mask = at::empty_like(input, at::kBool);
  if (input.is_complex()) {
    by_mask(output, mask, input, p);
    return {output, mask};
  }
  const auto [seed, offset] = next_philox(std::nullopt, input.device(),
                                          philox_increment(static_cast<uint64_t>(input.numel())));
  try {
    dropout(stream_of(input), view_of(output), view_of(mask), view_of(input), {seed, offset}, p);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    explain_fallback(error);
    by_mask(output, mask, input, p);
  }
  return {output, mask};
}

at::Tensor GRAFT_OPERATOR(native_dropout_backward)(const at::Tensor& grad_output,
                                                   const at::Tensor& mask, double scale) {
  // Integers become floating by the scale, as they do on the CPU; other sizes are broadcast; the
  // kernel knows no complex numbers.
  const bool plain = grad_output.sizes() == mask.sizes() && mask.scalar_type() == at::kBool;
  if (!plain || !grad_output.is_floating_point()) {
    return grad_output.mul(mask).mul(scale);
  }
  at::Tensor grad_input = at::empty_like(grad_output);
  if (grad_input.numel() == 0) return grad_input;
  dropout_backward(stream_of(grad_output), view_of(grad_input), view_of(grad_output), view_of(mask),
                   scale);
  return grad_input;
}

}  // namespace graft::binding
