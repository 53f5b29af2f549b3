// src/torch/compiled/write_count.cpp: PyTorch's count of a tensor's writes.
#include "torch/compiled/write_count.h"

namespace graft::binding {

void share_count(const at::Tensor& copy, const at::Tensor& source) {
  if (copy.is_inference() || source.is_inference()) return;
  copy.unsafeGetTensorImpl()->set_version_counter(source.unsafeGetTensorImpl()->version_counter());
}

void count_apart(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));
}

}  // namespace graft::binding
