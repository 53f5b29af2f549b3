// src/torch/offload/gradient_order.cpp: when a backward pass goes on with a copy's gradient.
#include "torch/offload/gradient_order.h"

#include <cstdint>
#include <limits>

#include "torch/version/autograd.h"

namespace graft::binding {

void hurry_gradient(const at::Tensor& copy) {
  copy.grad_fn()->set_sequence_nr(std::numeric_limits<uint64_t>::max());  // as PyTorch's leaves
}

}  // namespace graft::binding
