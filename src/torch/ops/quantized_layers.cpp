// src/torch/ops/quantized_layers.cpp: what torch.ao.nn.quantized calls between linear layers and
// convolutions.
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/celu_ops.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/quantized_max_pool1d_ops.h>
#include <ATen/ops/quantized_max_pool2d_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/threshold_ops.h>

#include "torch/dispatch/custom_op.h"
#include "torch/ops/quantized_math.h"
#include "torch/tensor/quantization.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Number = const at::Scalar&;

at::Tensor in(const at::Tensor& numbers, const at::Tensor& self, double scale, int64_t zero) {
  return at::quantize_per_tensor(numbers, scale, zero, self.scalar_type());
}

template <Name row, bool relu>
at::Tensor binary(at::Tensor a, at::Tensor b, double scale, int64_t zero) {
  return combined(row.text, a, b, scale, zero, relu);
}

template <bool relu>
at::Tensor cat(const c10::List<at::Tensor>& tensors, int64_t dim, std::optional<double> scale,
               std::optional<int64_t> zero) {
  TORCH_CHECK(!tensors.empty(), "quantized::cat: expected a non-empty list of tensors");
  const Affine first = affine_of(tensors.get(0));
  return joined(tensors.vec(), dim, scale.value_or(first.scale),
                zero.value_or(static_cast<int64_t>(first.zero)), relu);
}

at::Tensor relu6(at::Tensor self, bool inplace) {
  const at::Tensor result = at::clamp(self, 0, 6);
  return inplace ? self.copy_(result) : result;
}

// An operator on the numbers of self, whose own arguments stand behind the result's scale.
template <class Op, class Schema = typename Op::schema>
struct AfterScale;
template <class Op, class... Arguments>
struct AfterScale<Op, at::Tensor(const at::Tensor&, Arguments...)> {
  static at::Tensor call(const at::Tensor& self, double scale, int64_t zero,
                         Arguments... arguments) {
    return in(Op::call(self.dequantize(), arguments...), self, scale, zero);
  }
};
at::Tensor leaky(at::Tensor self, Number slope, bool, double scale, int64_t zero) {
  return in(at::leaky_relu(self.dequantize(), slope), self, scale, zero);
}
at::Tensor softmax(const at::Tensor& self, int64_t dim, double scale, int64_t zero) {
  return in(at::softmax(self.dequantize(), dim), self, scale, zero);
}
at::Tensor prelu(at::Tensor self, const at::Tensor& weight, double scale, int64_t zero) {
  const at::Tensor slopes = weight.is_quantized() ? weight.dequantize() : weight;
  return in(at::prelu(self.dequantize(), slopes), self, scale, zero);
}
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b, double scale, int64_t zero) {
  return in(at::matmul(a.dequantize(), b.dequantize()), a, scale, zero);
}

template <bool relu>
at::Tensor batch_norm(at::Tensor self, Optional weight, Optional bias, at::Tensor mean,
                      at::Tensor var, double eps, double scale, int64_t zero) {
  at::Tensor numbers =
      at::batch_norm(self.dequantize(), weight, bias, mean, var, false, 0, eps, false);
  return in(relu ? numbers.relu_() : numbers, self, scale, zero);
}
at::Tensor layer_norm(at::Tensor self, std::vector<int64_t> shape, Optional weight, Optional bias,
                      double eps, double scale, int64_t zero) {
  return in(at::layer_norm(self.dequantize(), shape, weight, bias, eps), self, scale, zero);
}
at::Tensor group_norm(at::Tensor self, int64_t groups, Optional weight, Optional bias, double eps,
                      double scale, int64_t zero) {
  return in(at::group_norm(self.dequantize(), groups, weight, bias, eps), self, scale, zero);
}
at::Tensor instance_norm(at::Tensor self, Optional weight, Optional bias, double eps, double scale,
                         int64_t zero) {
  return in(at::instance_norm(self.dequantize(), weight, bias, {}, {}, true, 0, eps, false), self,
            scale, zero);
}

}  // namespace

TORCH_LIBRARY_IMPL(quantized, GRAFT_QUANTIZED_KEY, m) {
  implement_custom<CustomOp<"quantized::add">, &binary<"quantized_add", false>>(m);
  implement_custom<CustomOp<"quantized::add_relu">, &binary<"quantized_add", true>>(m);
  implement_custom<CustomOp<"quantized::mul">, &binary<"quantized_mul", false>>(m);
  implement_custom<CustomOp<"quantized::mul_relu">, &binary<"quantized_mul", true>>(m);
  implement_custom<CustomOp<"quantized::cat">, &cat<false>>(m);
  implement_custom<CustomOp<"quantized::cat_relu">, &cat<true>>(m);
  implement_custom<CustomOp<"quantized::relu6">, &relu6>(m);
  implement_custom<CustomOp<"quantized::clamp">, &at::_ops::clamp::call>(m);
  implement_custom<CustomOp<"quantized::threshold">, &at::_ops::threshold::call>(m);
  implement_custom<CustomOp<"quantized::hardswish">, &AfterScale<at::_ops::hardswish>::call>(m);
  implement_custom<CustomOp<"quantized::elu">, &AfterScale<at::_ops::elu>::call>(m);
  implement_custom<CustomOp<"quantized::celu">, &AfterScale<at::_ops::celu>::call>(m);
  implement_custom<CustomOp<"quantized::leaky_relu">, &leaky>(m);
  implement_custom<CustomOp<"quantized::sigmoid">, &AfterScale<at::_ops::sigmoid>::call>(m);
  implement_custom<CustomOp<"quantized::softmax">, &softmax>(m);
  implement_custom<CustomOp<"quantized::prelu">, &prelu>(m);
  implement_custom<CustomOp<"quantized::matmul">, &matmul>(m);
  implement_custom<CustomOp<"quantized::batch_norm">, &batch_norm<false>>(m);
  implement_custom<CustomOp<"quantized::batch_norm_relu">, &batch_norm<true>>(m);
  implement_custom<CustomOp<"quantized::batch_norm1d">, &batch_norm<false>>(m);
  implement_custom<CustomOp<"quantized::batch_norm1d_relu">, &batch_norm<true>>(m);
  implement_custom<CustomOp<"quantized::batch_norm2d">, &batch_norm<false>>(m);
  implement_custom<CustomOp<"quantized::batch_norm2d_relu">, &batch_norm<true>>(m);
  implement_custom<CustomOp<"quantized::batch_norm3d">, &batch_norm<false>>(m);
  implement_custom<CustomOp<"quantized::batch_norm3d_relu">, &batch_norm<true>>(m);
  implement_custom<CustomOp<"quantized::layer_norm">, &layer_norm>(m);
  implement_custom<CustomOp<"quantized::group_norm">, &group_norm>(m);
  implement_custom<CustomOp<"quantized::instance_norm">, &instance_norm>(m);
  implement_custom<CustomOp<"quantized::max_pool1d">, &at::_ops::quantized_max_pool1d::call>(m);
  implement_custom<CustomOp<"quantized::max_pool2d">, &at::_ops::quantized_max_pool2d::call>(m);
}

}  // namespace graft::binding
