// src/torch/tensor/quantization.cpp: what kernels on quantized numbers share.
#include "torch/tensor/quantization.h"

#include <limits>

#include "torch/tensor/view.h"

namespace graft::binding {

Bounds bounds_of(at::ScalarType type) {
  switch (type) {
    case at::kQInt8:
    case at::kChar:
      return {-128, 127};
    case at::kQUInt8:
    case at::kByte:
      return {0, 255};
    case at::kQInt32:
    case at::kInt:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    default:
      throw Error(GRAFT_UNSUPPORTED,
                  std::string("no kernel for quantized numbers of torch.") + c10::toString(type));
  }
}

TensorView along(const at::Tensor& vector, const at::Tensor& like, int64_t axis) {
  TORCH_CHECK(vector.device() == like.device(),
              "Expected all tensors to be on the same device, but got scales or zero points on ",
              vector.device(), " for a tensor on ", like.device());
  const TensorView own = view_of(vector);
  TensorView view = own;
  view.rank = static_cast<int>(like.dim());
  for (int d = 0; d < view.rank; ++d) {
    view.sizes[d] = like.size(d);
    view.strides[d] = 0;
  }
  if (vector.numel() == 1) return view;
  TORCH_CHECK(vector.dim() == 1 && axis < like.dim() && vector.numel() == like.size(axis),
              "expected one scale and one zero point for each of ", like.size(axis),
              " channels, got ", vector.sizes());
  view.strides[axis] = own.strides[0];
  return view;
}

Scalar same(double number) { return Scalar::of(static_cast<float>(number)); }

Affine affine_of(const at::Tensor& quantized) {
  TORCH_CHECK(quantized.qscheme() == at::kPerTensorAffine,
              "expected a tensor with one scale and one zero point, got one of ",
              c10::toString(quantized.qscheme()));
  return {quantized.q_scale(), static_cast<double>(quantized.q_zero_point())};
}

}  // namespace graft::binding
