// src/torch/ops/quantized.cpp: PyTorch's operators on quantized tensors: copies, what only moves
// or compares integers, and what goes through their numbers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/_adaptive_avg_pool3d_ops.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/avg_pool3d_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool3d_with_indices_ops.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/quantized_max_pool1d_ops.h>
#include <ATen/ops/quantized_max_pool2d_ops.h>
#include <ATen/ops/quantized_max_pool3d_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_ops.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/upsample_bilinear2d_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/upsample_nearest3d_ops.h>
#include <torch/library.h>

#include <cmath>

#include "runtime/driver/op_tag.h"
#include "torch/device/errors.h"
#include "torch/device/scope.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/ops/quantized_math.h"
#include "torch/tensor/copy.h"
#include "torch/tensor/quantization.h"

namespace graft::binding {
namespace {

using Numbers = std::optional<at::Scalar>;

// Integers of another order or choice keep their meaning.
at::Tensor with_meaning_of(const at::Tensor& self, const at::Tensor& integers) {
  return quantized_over(integers, self.quantizer());
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  const OpScope scope("aten::copy_");
  TORCH_CHECK(to.is_quantized(),
              "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use "
              "dequantize to get a float Tensor from a quantized Tensor");
  if (!self.is_quantized()) {
    const DeviceScope device(to.device());
    const at::Tensor numbers = self.to(to.device(), at::kFloat).expand(to.sizes()).contiguous();
    translate(
        [&] { binding::copy(integers_of(to), integers_of(to.quantizer()->quantize(numbers))); });
    return to;
  }
  TORCH_CHECK(self.qscheme() == to.qscheme(), "Quantized Copy only works with same qscheme, got ",
              c10::toString(self.qscheme()), " and ", c10::toString(to.qscheme()));
  TORCH_CHECK(self.scalar_type() == to.scalar_type(),
              "Quantized Copy only works with same dtype, got ", self.dtype(), " and ", to.dtype());
  translate([&] {
    binding::copy(integers_of(to), integers_of(self), non_blocking);
    at::set_quantizer_(to, quantizer_on(self, to.device()));
  });
  return to;
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  if (!other.is_quantized() || self.sizes() != other.sizes() ||
      self.scalar_type() != other.scalar_type()) {
    return false;
  }
  return self.quantizer()->equalTo(other.quantizer()) &&
         integers_of(self).equal(integers_of(other));
}

// The integer that stands for a number.
int64_t integer_for(const at::Scalar& number, const at::Tensor& self) {
  const Affine affine = affine_of(self);
  const Bounds bounds = bounds_of(self.scalar_type());
  const double found = std::nearbyint(number.toFloat() * (1.0f / static_cast<float>(affine.scale)));
  return static_cast<int64_t>(std::clamp(found + affine.zero, bounds.low, bounds.high));
}

at::Tensor bounded(const at::Tensor& self, const Numbers& low, const Numbers& high) {
  const auto bound = [&](const Numbers& number) {
    return number.has_value() ? Numbers(integer_for(*number, self)) : std::nullopt;
  };
  return with_meaning_of(self, at::clamp(integers_of(self), bound(low), bound(high)));
}

at::Tensor& bounded_(at::Tensor& self, const Numbers& low, const Numbers& high) {
  copy_from(bounded(self, low, high), self, false);
  return self;
}

at::Tensor relu(const at::Tensor& self) { return bounded(self, 0, std::nullopt); }
at::Tensor& relu_(at::Tensor& self) { return bounded_(self, 0, std::nullopt); }
at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return bounded(self, low, high);
}
at::Tensor& hardtanh_(at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return bounded_(self, low, high);
}

// An operator on the numbers of self, whose result keeps the scale.
template <class Op, class Schema = typename Op::schema>
struct KeepingScale;
template <class Op, class... Arguments>
struct KeepingScale<Op, at::Tensor(const at::Tensor&, Arguments...)> {
  static at::Tensor call(const at::Tensor& self, Arguments... arguments) {
    return like(self, Op::call(self.dequantize(), arguments...));
  }
};

at::Tensor& leaky_(at::Tensor& self, const at::Scalar& slope) {
  copy_from(KeepingScale<at::_ops::leaky_relu>::call(self, slope), self, false);
  return self;
}

// Functions whose results lie in a known range, which the integers then span.
at::Tensor spanning(const at::Tensor& self, const at::Tensor& numbers, double low, double high) {
  if (self.scalar_type() == at::kQInt32) {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for functions of quantized numbers of 32 bits");
  }
  const Bounds bounds = bounds_of(self.scalar_type());
  const double scale = (high - low) / 256;
  return at::quantize_per_tensor(numbers, scale, static_cast<int64_t>(bounds.low - low / scale),
                                 self.scalar_type());
}
template <class Op, int low>
at::Tensor up_to_one(const at::Tensor& self) {
  return spanning(self, Op::call(self.dequantize()), low, 1);
}

at::Tensor max_pool1d(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                      at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const int64_t step = stride.empty() ? kernel[0] : stride[0];
  const at::Tensor planes = integers_of(self).unsqueeze(-2);
  const auto [most, places] = at::max_pool2d_with_indices(
      planes, {1, kernel[0]}, {1, step}, {0, padding[0]}, {1, dilation[0]}, ceil_mode);
  return with_meaning_of(self, most.squeeze(-2));
}
// Of planes or volumes, by the operator that also tells the places.
template <class Op>
at::Tensor max_pool(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const auto [most, places] =
      Op::call(integers_of(self), kernel, stride, padding, dilation, ceil_mode);
  return with_meaning_of(self, most);
}

at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  return with_meaning_of(self, integers_of(self).flip(dims));
}

// Per channel, other rows along the axis would need other scales: the fallback has the message.
at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  affine_of(self);
  return with_meaning_of(self, integers_of(self).index_select(dim, index));
}

at::Tensor index(const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices) {
  affine_of(self);
  return with_meaning_of(self, at::index(integers_of(self), indices));
}

// Integers are ordered as what they stand for.
std::tuple<at::Tensor, at::Tensor> topk(const at::Tensor& self, int64_t count, int64_t dim,
                                        bool largest, bool sorted) {
  affine_of(self);
  const auto [values, places] = at::topk(integers_of(self), count, dim, largest, sorted);
  return {with_meaning_of(self, values), places};
}
std::tuple<at::Tensor, at::Tensor> sort(const at::Tensor& self, std::optional<bool> stable,
                                        int64_t dim, bool descending) {
  affine_of(self);
  const auto [values, places] = at::sort(integers_of(self), stable, dim, descending);
  return {with_meaning_of(self, values), places};
}

// What is not quantized becomes float32, as on the CPU: complex numbers lose their imaginary part.
at::Tensor numbers_of(const at::Tensor& tensor) {
  return tensor.is_quantized() ? tensor.dequantize() : tensor.to(at::kFloat);
}
template <auto comparison>
at::Tensor compared(const at::Tensor& self, const at::Tensor& other) {
  return comparison(numbers_of(self), numbers_of(other));
}
template <auto comparison>
at::Tensor compared_with(const at::Tensor& self, const at::Scalar& other) {
  return comparison(numbers_of(self), other);
}

// Registers both overloads of a comparison.
template <class WithTensor, class WithNumber>
void implement_comparison(torch::Library& m) {
  implement<WithTensor, &compared<&WithTensor::call>>(m);
  implement<WithNumber, &compared_with<&WithNumber::call>>(m);
}

template <class Op>
void keep_scale(torch::Library& m) {
  implement<Op, &KeepingScale<Op>::call>(m);
}

at::Tensor mean(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                std::optional<at::ScalarType>) {
  return like(self, at::mean(self.dequantize(), dims, keepdim));
}

// In the scale of the first one, as upstream.
at::Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  const auto all = tensors.materialize();
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : all) parts.push_back(tensor);
  const Affine affine = affine_of(parts.front());
  return joined(parts, dim, affine.scale, static_cast<int64_t>(affine.zero));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, GRAFT_QUANTIZED_KEY, m) {
  m.impl("flip", TORCH_FN(flip));
  implement<at::_ops::_copy_from, &copy_from>(m);
  implement<at::_ops::equal, &equal>(m);
  implement<at::_ops::relu, &relu>(m);
  implement<at::_ops::relu_, &relu_>(m);
  implement<at::_ops::clamp, &bounded>(m);
  implement<at::_ops::hardtanh, &hardtanh>(m);
  implement<at::_ops::hardtanh_, &hardtanh_>(m);
  keep_scale<at::_ops::leaky_relu>(m);
  implement<at::_ops::leaky_relu_, &leaky_>(m);
  keep_scale<at::_ops::gelu>(m);
  keep_scale<at::_ops::threshold>(m);
  implement<at::_ops::sigmoid, &up_to_one<at::_ops::sigmoid, 0>>(m);
  implement<at::_ops::hardsigmoid, &up_to_one<at::_ops::hardsigmoid, 0>>(m);
  implement<at::_ops::tanh, &up_to_one<at::_ops::tanh, -1>>(m);
  implement<at::_ops::quantized_max_pool1d, &max_pool1d>(m);
  implement<at::_ops::quantized_max_pool2d, &max_pool<at::_ops::max_pool2d_with_indices>>(m);
  implement<at::_ops::quantized_max_pool3d, &max_pool<at::_ops::max_pool3d_with_indices>>(m);
  implement<at::_ops::index_select, &index_select>(m);
  keep_scale<at::_ops::upsample_nearest2d>(m);
  keep_scale<at::_ops::upsample_nearest3d>(m);
  keep_scale<at::_ops::_upsample_nearest_exact2d>(m);
  keep_scale<at::_ops::_upsample_nearest_exact3d>(m);
  keep_scale<at::_ops::upsample_bilinear2d>(m);
  keep_scale<at::_ops::_adaptive_avg_pool2d>(m);
  keep_scale<at::_ops::_adaptive_avg_pool3d>(m);
  keep_scale<at::_ops::avg_pool2d>(m);
  keep_scale<at::_ops::avg_pool3d>(m);
  implement<at::_ops::mean_dim, &mean>(m);
  implement<at::_ops::cat, &cat>(m);
  implement<at::_ops::index_Tensor, &index>(m);
  implement<at::_ops::topk, &topk>(m);
  implement<at::_ops::sort_stable, &sort>(m);
  implement_comparison<at::_ops::eq_Tensor, at::_ops::eq_Scalar>(m);
  implement_comparison<at::_ops::ne_Tensor, at::_ops::ne_Scalar>(m);
  implement_comparison<at::_ops::lt_Tensor, at::_ops::lt_Scalar>(m);
  implement_comparison<at::_ops::le_Tensor, at::_ops::le_Scalar>(m);
  implement_comparison<at::_ops::gt_Tensor, at::_ops::gt_Scalar>(m);
  implement_comparison<at::_ops::ge_Tensor, at::_ops::ge_Scalar>(m);
}

}  // namespace graft::binding
