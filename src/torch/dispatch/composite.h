// src/torch/dispatch/composite.h: PyTorch's own way to do an operator, beside a kernel of ours.
#pragma once

#include <c10/core/DispatchKeySet.h>

namespace graft::binding {

// Calls what PyTorch registers of the operator for every backend that has no kernel of its own: no
// backend stands for this key. Autograd is not part of it.
template <class Op, class... Arguments>
auto composite(const Arguments&... arguments) {
  return Op::redispatch(c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), arguments...);
}

}  // namespace graft::binding
