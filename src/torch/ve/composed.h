// src/torch/ve/composed.h: replaces operators that PyTorch composes of others.
#pragma once

#include <c10/core/DispatchKey.h>
#include <torch/library.h>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// function is called in place of PyTorch's composition of the operator of aten, above autograd. It
// also gets tensors of other devices, since those of the slot have the autograd key that devices
// without one of their own share, and has to call the composition for them. Holds for as long as
// the process lives.
template <class Function>
void replace_composed(const char* name, Function* function) {
  // Only InferenceMode's tensors come to the slot's own key.
  for (const c10::DispatchKey key : {c10::DispatchKey::AutogradOther, kKey}) {
    auto* const library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl(name, function);
  }
}

}  // namespace graft::binding::ve
