// src/torch/ops/quantized_math.h: arithmetic on quantized tensors with one scale each.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace graft::binding {

// Numbers with the dtype, scale and zero point of self. Throws RuntimeError where self has a scale
// for each channel.
at::Tensor like(const at::Tensor& self, const at::Tensor& numbers);

// Tensors one after the other along dim, in the given scale and zero point; relu: without what is
// below 0.
at::Tensor joined(const std::vector<at::Tensor>& tensors, int64_t dim, double scale, int64_t zero,
                  bool relu = false);

// The row of the op table (quantized_add or quantized_mul) on a and b, which are broadcast, in the
// given scale and zero point; relu as above.
at::Tensor combined(std::string_view row, const at::Tensor& a, const at::Tensor& b, double scale,
                    int64_t zero, bool relu);

}  // namespace graft::binding
