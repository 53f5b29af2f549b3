// src/torch/tensor/device_assertion.cpp: the extremes of a tensor, and a condition on them.
#include "torch/tensor/device_assertion.h"

#include <ATen/ops/aminmax.h>

#include "kernels/launch/assertion.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

void require_elements_within(const at::Tensor& tensor, double low, double high,
                             std::string_view message) {
  if (tensor.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(tensor.detach());
  require_within(stream_of(tensor), view_of(smallest), view_of(largest), low, high, message);
}

}  // namespace graft::binding
