// src/torch/tensor/device_assertion.h: conditions on a tensor's elements, checked on the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace graft::binding {

// Checks low <= x <= high for every element of a real tensor; NaN fails, no element passes. Does
// not wait: what fails is reported as kernels/launch/assertion.h says.
void require_elements_within(const at::Tensor& tensor, double low, double high,
                             std::string_view message);

}  // namespace graft::binding
