// src/torch/device/errors.cpp: turns errors of the runtime into PyTorch's exceptions.
#include "torch/device/errors.h"

#include <c10/util/Exception.h>

namespace graft::binding {

void throw_as_torch(const Error& error) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (error.status()) {
    case GRAFT_OUT_OF_MEMORY:
      throw c10::OutOfMemoryError(here, error.what());
    case GRAFT_DEVICE_LOST:
    case GRAFT_LAUNCH_FAILED:
    case GRAFT_TIMEOUT:
    case GRAFT_INTERNAL:
      throw c10::AcceleratorError(here, static_cast<int32_t>(error.status()), error.what());
    default:
      throw c10::Error(here, error.what());
  }
}

}  // namespace graft::binding
