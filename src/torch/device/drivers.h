// src/torch/device/drivers.h: drivers as Python's users load them and hear of them.
#pragma once

#include <string>

namespace graft::binding {

// Adds a driver library that the user names; its devices come after those that are counted. Throws
// Error: the reason of a refusal, or, once autograd has sized its threads (at the first backward of
// the process), that GRAFT_DRIVER_PATH is the way.
void load_driver(const std::string& path);

// One Python warning for each refused library that nobody was told of yet.
void warn_of_refusals() noexcept;

}  // namespace graft::binding
