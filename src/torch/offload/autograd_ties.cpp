// src/torch/offload/autograd_ties.cpp: what ties a copy on a device to its host for autograd.
#include "torch/offload/autograd_ties.h"

#include <limits>

#include "torch/version/autograd.h"

namespace graft::binding {

namespace counts = torch::autograd::impl;

void share_count(const at::Tensor& copy, const at::Tensor& host) {
  if (!host.is_inference()) counts::set_version_counter(copy, counts::version_counter(host));
}

void count_apart(const at::Tensor& copy) {
  counts::set_version_counter(copy, c10::VariableVersion(0));
}

void hurry_gradient(const at::Tensor& copy) {
  copy.grad_fn()->set_sequence_nr(std::numeric_limits<uint64_t>::max());  // as PyTorch's leaves
}

}  // namespace graft::binding
