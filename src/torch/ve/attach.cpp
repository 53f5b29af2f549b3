// src/torch/ve/attach.cpp: makes PyTorch know the slot.
#include "torch/ve/attach.h"

#include "torch/ve/slot.h"
#include "torch/version/dispatch.h"

namespace graft::binding::ve {

bool taken() { return c10::impl::hasDeviceGuardImpl(kType); }

void attach() {
  attach_guard();
  attach_memory();
  attach_kernels();
}

}  // namespace graft::binding::ve
