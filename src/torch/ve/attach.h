// src/torch/ve/attach.h: makes PyTorch know the slot.
#pragma once

#include <c10/core/DispatchKey.h>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// Each is called once, by attach; what is registered lives as long as the process.
void attach_guard();
void attach_memory();
void attach_kernels();
void attach_composites();
void attach_recurrent();

// Where an operator that PyTorch composes is replaced. Tensors of the slot have the autograd key
// that devices without one of their own share, so a replacement looks at the device first;
// InferenceMode's have none.
inline constexpr c10::DispatchKey kComposedKeys[] = {c10::DispatchKey::AutogradOther, kKey};

// torch.distributed's operators. Called once, before the first tensor of the slot exists.
void attach_collectives();

// Whether somebody else serves torch.device("ve") in this process.
bool taken();

// Attaches all of it. Loads no driver and opens no device. REQUIRES: !taken().
void attach();

}  // namespace graft::binding::ve
