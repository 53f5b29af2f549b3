// src/torch/offload/autograd_ties.h: what ties a copy on a device to its host for autograd.
#pragma once

#include <ATen/core/Tensor.h>

namespace graft::binding {

// Writes of copy are counted as host's and the other way round, so that PyTorch refuses a backward
// pass that saved the one after a counted write of the other. Nothing for a host of inference mode.
void share_count(const at::Tensor& copy, const at::Tensor& host);

// Writes of copy are counted apart again.
void count_apart(const at::Tensor& copy);

// A backward pass goes on with copy's gradient as soon as it has it, instead of once all is
// computed that ran later in the forward pass. REQUIRES: copy is a function of its host.
void hurry_gradient(const at::Tensor& copy);

}  // namespace graft::binding
