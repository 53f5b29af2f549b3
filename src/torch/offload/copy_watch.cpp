// src/torch/offload/copy_watch.cpp: whether the device wrote a copy of a tensor in host memory.
#include "torch/offload/copy_watch.h"

namespace graft::binding {

CopyWatch::CopyWatch(const at::Tensor& copy, bool buffer) : watch_({copy}), buffer_(buffer) {}

void CopyWatch::look() {
  watch_.look();
  version_ = tensor()._version();
}

bool CopyWatch::written() const {
  if (watch_.unchanged()) return false;
  return watch_.trusted() || buffer_ || tensor()._version() != version_;
}

}  // namespace graft::binding
