// src/torch/device/errors.h: turns errors of the runtime into PyTorch's exceptions.
#pragma once

#include <utility>

#include "runtime/driver/error.h"

namespace graft::binding {

// Throws what PyTorch's users catch, with the error's own text: torch.OutOfMemoryError for
// OUT_OF_MEMORY, torch.AcceleratorError (a RuntimeError) where the device failed or is lost, and
// RuntimeError for the rest.
[[noreturn]] void throw_as_torch(const Error& error);

// Returns f(); an Error of the runtime leaves as PyTorch's exception. Every entry from PyTorch
// that calls the runtime goes through here (operators: through guarded.h, which does it too).
template <class F>
decltype(auto) translate(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    throw_as_torch(error);
  }
}

}  // namespace graft::binding
