// src/torch/device/profiler_stubs.h: timed events around operators, for the
// profiler without Kineto.
#pragma once

namespace graft::binding {

// Registers what `torch.autograd.profiler.profile(use_device=...)` takes its times from. Called
// once, by attach_profiler; lives as long as the process.
void attach_profiler_stubs();

}  // namespace graft::binding
