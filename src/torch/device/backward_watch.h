// src/torch/device/backward_watch.h: sees the first backward pass on a device.
#pragma once

#include <functional>

namespace graft::binding {

// Calls seen once, before the first node of autograd that gets a gradient on a device of ours, on
// the thread that runs the node; that thread does not hold Python's lock. Replaces an earlier seen
// that was not called. Thread-safe. Until the call, PyTorch asks at each node of a backward pass;
// after it, and for operators outside of backward passes, this costs nothing.
void watch_first_backward(std::function<void()> seen);

// Forgets seen; does nothing if it was called. Thread-safe.
void unwatch_backward();

}  // namespace graft::binding
