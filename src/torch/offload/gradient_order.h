// src/torch/offload/gradient_order.h: when a backward pass goes on with a copy's gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace graft::binding {

// A backward pass goes on with copy's gradient as soon as it has it, instead of once all is
// computed that ran later in the forward pass. REQUIRES: copy is a function of its host.
void hurry_gradient(const at::Tensor& copy);

}  // namespace graft::binding
