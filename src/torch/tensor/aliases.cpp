// src/torch/tensor/aliases.cpp: operators that only make another tensor over the same storage.
#include <torch/library.h>

#include "torch/device/type.h"
#include "torch/version/views.h"

namespace graft::binding {
namespace {

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return native::as_strided_tensorimpl(self, sizes, strides, offset);
}
at::Tensor view(const at::Tensor& self, at::IntArrayRef sizes) { return native::view(self, sizes); }
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return native::_reshape_alias(self, sizes, strides);
}
bool dense(const at::Tensor& tensor) {
  const c10::DeviceType type = tensor.device().type();
  return (type == kDeviceType || type == c10::DeviceType::CPU) && tensor.layout() == at::kStrided &&
         !tensor.is_quantized() && !tensor.is_nested() && !tensor.is_mkldnn();
}
// Whether self may become from in place, as by Module.to. PyTorch's rule knows its own devices.
bool compatible(const at::Tensor& self, const at::Tensor& from) {
  return (dense(self) && dense(from)) ||
         self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("_has_compatible_shallow_copy_type", &compatible);
}

}  // namespace graft::binding
