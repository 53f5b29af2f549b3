// src/torch/ve/generator.h: torch.Generator of the slot.
#pragma once

#include <ATen/core/Generator.h>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// The generator of a device of the slot: a face of the default generator of the device that carries
// it, which has the same seed and state. Throws RuntimeError out of range.
at::Generator default_generator(c10::DeviceIndex index);

// A new one with the default seed. Throws RuntimeError out of range.
at::Generator new_generator(c10::DeviceIndex index);

// The generator behind one of the slot; any other generator is returned as it is.
at::Generator inner_generator(const at::Generator& outer);

}  // namespace graft::binding::ve
