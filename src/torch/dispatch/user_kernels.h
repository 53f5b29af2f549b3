// src/torch/dispatch/user_kernels.h: kernels that a user registered for an operator of PyTorch's.
#pragma once

#include <c10/core/DispatchKey.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torch/version/dispatch.h"

namespace graft::binding {

struct UserKernel {
  std::string place;   // where it was registered: "model.py:12"
  bool slots = false;  // for tensors of torch.device("ve") rather than of the device behind them
};

// The kernel that calls on dense tensors of the device reach, if neither PyTorch nor Graft
// registered it: through torch.library or TORCH_LIBRARY_IMPL, for the device's key or for a key
// that stands for several devices. Of several the last that is still registered. Empty for
// operators outside of "aten", which are all their authors' own. slot: calls on tensors of
// torch.device("ve"). Any thread; about a microsecond.
std::optional<UserKernel> user_kernel(const c10::OperatorHandle& op, bool slot);

// The same by name ("aten::add.Tensor"), for those of the names that have one. Names that PyTorch
// does not know have none.
std::map<std::string, UserKernel> user_kernels(const std::vector<std::string>& names, bool slot);

// Of all operators of "aten". Takes a few milliseconds.
std::map<std::string, UserKernel> all_user_kernels(bool slot);

// The operators of "aten" for which a user registered a kernel for the device's key of autograd:
// calls reach it before those above, also if no gradient is wanted. Takes a few milliseconds.
std::vector<std::string> user_autograd_kernels(bool slot);

}  // namespace graft::binding
