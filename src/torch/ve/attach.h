// src/torch/ve/attach.h: makes PyTorch know the slot.
#pragma once

namespace graft::binding::ve {

// Each is called once, by attach; what is registered lives as long as the process.
void attach_guard();
void attach_memory();
void attach_kernels();
void attach_composites();

// torch.distributed's operators. Called once, before the first tensor of the slot exists.
void attach_collectives();

// Whether somebody else serves torch.device("ve") in this process.
bool taken();

// Attaches all of it. Loads no driver and opens no device. REQUIRES: !taken().
void attach();

}  // namespace graft::binding::ve
