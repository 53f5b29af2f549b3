// src/torch/ops/quantized_math.cpp: arithmetic on quantized tensors with one scale each.
#include "torch/ops/quantized_math.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/quantize_per_tensor.h>

#include "kernels/pointwise/pointwise.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/quantization.h"

namespace graft::binding {
namespace {

at::Tensor empty_affine(at::IntArrayRef sizes, const at::Tensor& like, double scale, int64_t zero) {
  return at::_empty_affine_quantized(sizes, like.options(), scale, zero,
                                     like.suggest_memory_format());
}

double lowest(const Bounds& bounds, int64_t zero, bool relu) {
  return relu ? std::max(bounds.low, static_cast<double>(zero)) : bounds.low;
}

// Upstream multiplies with the reciprocal in float32.
Scalar reciprocal(double scale) { return Scalar::of(1.0f / static_cast<float>(scale)); }

void change(const at::Tensor& to, const at::Tensor& from, double scale, int64_t zero, bool relu) {
  if (from.numel() == 0) return;
  const Affine old = affine_of(from);
  const Bounds bounds = bounds_of(from.scalar_type());
  const TensorView output = view_of(to);
  const Operand input = view_of(integers_of(from));
  const Scalar scalars[] = {same(old.zero),
                            same(old.scale),
                            reciprocal(scale),
                            same(static_cast<double>(zero)),
                            same(lowest(bounds, zero, relu)),
                            same(bounds.high)};
  pointwise(stream_of(from), op_row<"change_quantization">(), GRAFT_FLOAT32, {&output, 1},
            {&input, 1}, scalars);
}

}  // namespace

at::Tensor like(const at::Tensor& self, const at::Tensor& numbers) {
  const Affine affine = affine_of(self);
  return at::quantize_per_tensor(numbers, affine.scale, static_cast<int64_t>(affine.zero),
                                 self.scalar_type());
}

at::Tensor joined(const std::vector<at::Tensor>& tensors, int64_t dim, double scale, int64_t zero,
                  bool relu) {
  TORCH_CHECK(!tensors.empty(), "expected a non-empty list of quantized tensors");
  const at::Tensor& first = tensors.front();
  dim = at::maybe_wrap_dim(dim, first.dim());
  at::DimVector sizes(first.sizes());
  sizes[static_cast<size_t>(dim)] = 0;
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.is_quantized() && tensor.scalar_type() == first.scalar_type() &&
                    tensor.device() == first.device() && tensor.dim() == first.dim(),
                "quantized tensors that are joined must agree in dtype, device and dimensions");
    for (int64_t d = 0; d < first.dim(); ++d) {
      TORCH_CHECK(d == dim || tensor.size(d) == first.size(d),
                  "Sizes of tensors must match except in dimension ", dim, ", got ", tensor.sizes(),
                  " beside ", first.sizes());
    }
    sizes[static_cast<size_t>(dim)] += tensor.size(dim);
  }
  at::Tensor result = empty_affine(sizes, first, scale, zero);
  const at::Tensor integers = integers_of(result);
  int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    change(integers.narrow(dim, at, tensor.size(dim)), tensor, scale, zero, relu);
    at += tensor.size(dim);
  }
  return result;
}

at::Tensor combined(std::string_view row, const at::Tensor& a, const at::Tensor& b, double scale,
                    int64_t zero, bool relu) {
  TORCH_CHECK(a.is_quantized() && b.is_quantized() && a.scalar_type() == b.scalar_type() &&
                  a.device() == b.device(),
              row, ": both tensors must be quantized, of one dtype and on one device, got ",
              a.toString(), " on ", a.device(), " and ", b.toString(), " on ", b.device());
  const Affine left = affine_of(a), right = affine_of(b);
  const auto sizes = at::infer_size_dimvector(a.sizes(), b.sizes());
  at::Tensor result = empty_affine(sizes, a.sizes() == sizes ? a : b, scale, zero);
  if (result.numel() == 0) return result;
  const Bounds bounds = bounds_of(a.scalar_type());
  const TensorView output = view_of(integers_of(result));
  const Operand inputs[] = {view_of(integers_of(a).expand(sizes)),
                            view_of(integers_of(b).expand(sizes))};
  const Scalar scalars[] = {same(left.zero),
                            same(left.scale),
                            same(right.zero),
                            same(right.scale),
                            reciprocal(scale),
                            same(static_cast<double>(zero)),
                            same(lowest(bounds, zero, relu)),
                            same(bounds.high)};
  pointwise(stream_of(result), op_row(row), GRAFT_FLOAT32, {&output, 1}, inputs, scalars);
  return result;
}

}  // namespace graft::binding
