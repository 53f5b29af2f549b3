// src/torch/device/attach.h: makes PyTorch know the device type.
#pragma once

namespace graft::binding {

// Registers what PyTorch keeps per device type. Each is called once, by attach, before any tensor
// of the type exists; what is registered lives as long as the process.
void attach_guard();
void attach_hooks();
void attach_memory();
void attach_pinned_memory();
void attach_graphs();
void attach_profiler();

// Traces the ops where GRAFT_TRACE=1 asks for it.
void attach_trace();

// Lets the signals that Python handles end a wait for a device.
void attach_interrupts();

// Attaches all of it. REQUIRES: no other backend has taken the device type.
void attach();

}  // namespace graft::binding
