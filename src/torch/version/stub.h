// src/torch/version/stub.h: from inside torch: tables of kernels by device.
#pragma once

#include <ATen/native/DispatchStub.h>

namespace graft::binding::native {

using at::native::DispatchStub;

}  // namespace graft::binding::native
