// src/torch/dispatch/fallback.h: runs on the CPU what the device has no kernel for, and counts it.
#pragma once

#include <ATen/core/stack.h>

#include "torch/version/dispatch.h"

namespace graft::binding {

// Calls op's CPU kernel on host images of the device's tensors and brings back what it wrote and
// returned: right for views, in-place, out=, sparse tensors, tensor lists and optional tensors.
// Where the driver offers memory_host_view the images alias device memory and nothing is copied in.
// A random operator draws from a fresh CPU generator that the device's Philox state seeds, never
// from torch's. Throws RuntimeError where the policy forbids it.
void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack);

}  // namespace graft::binding
