// src/torch/tensor/operands.h: tensors of hand-written operators as the kernel library takes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"
#include "torch/tensor/view.h"

namespace graft::binding {

// The runtime's stream behind PyTorch's current stream of the tensor's device.
inline Stream& stream_of(const at::Tensor& tensor) {
  return current_stream(tensor.device().index());
}

// A tensor that may be missing, as the pointer that kernels take.
class OptionalView {
 public:
  explicit OptionalView(const at::Tensor& tensor) {
    if (tensor.defined()) view_ = view_of(tensor);
  }
  explicit OptionalView(const std::optional<at::Tensor>& tensor) {
    if (tensor.has_value() && tensor->defined()) view_ = view_of(*tensor);
  }
  explicit OptionalView(at::OptionalTensorRef tensor) {
    if (tensor.has_value()) view_ = view_of(*tensor);
  }
  const TensorView* get() const { return view_.has_value() ? &*view_ : nullptr; }

 private:
  std::optional<TensorView> view_;
};

// The number that fill_ writes to a tensor of numel elements. Throws PyTorch's error for one that
// the dtype cannot hold; a single element of a half type takes any, as on the CPU.
graft::Scalar fill_number(const at::Scalar& value, at::ScalarType type, int64_t numel);

// The number as a real factor of a kernel. Throws UNSUPPORTED for a complex one.
double real_factor(const at::Scalar& number);

// A missing tensor as an undefined one.
inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}
inline at::Tensor or_undefined(at::OptionalTensorRef tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

// A number as a vector of one element; any other tensor as it is.
inline at::Tensor at_least_1d(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
}

// The layout in which kernels take images: one that is dense.
inline at::MemoryFormat image_format(const at::Tensor& images) {
  const at::MemoryFormat format = images.suggest_memory_format();
  return format == at::MemoryFormat::Preserve ? at::MemoryFormat::Contiguous : format;
}

// The tensor's elements in row-major order, without a copy where they lie so; undefined for a
// missing tensor.
inline at::Tensor contiguous(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}
inline at::Tensor contiguous(const std::optional<at::Tensor>& tensor) {
  return contiguous(or_undefined(tensor));
}

}  // namespace graft::binding
