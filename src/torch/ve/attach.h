// src/torch/ve/attach.h: makes PyTorch know the slot.
#pragma once

namespace graft::binding::ve {

// Each is called once, by attach; what is registered lives as long as the process.
void attach_guard();
void attach_memory();
void attach_kernels();

// Operators of torch.distributed, and those that PyTorch composes for the slot and fuses for the
// devices of its own lists. Each is called once, before the first tensor of the slot exists.
void attach_collectives();
void attach_composites();
void attach_recurrent();

// Whether somebody else serves torch.device("ve") in this process.
bool taken();

// Attaches all of it. Loads no driver and opens no device. REQUIRES: !taken().
void attach();

}  // namespace graft::binding::ve
