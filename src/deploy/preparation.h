// src/deploy/preparation.h: keeps the compiled kernels of a deployed model in its file.
#pragma once

#include <string>

#include "runtime/driver/export.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// Opens the model on the device, runs it once on zeros of typical sizes, and writes the file anew
// with the kernels that this process loaded or compiled, beside those that it had for other
// devices. Where the host driver compiles for a level of processors (GRAFT_HOST_TARGET), the file
// keeps them for that level, beside those for others. Kernels of the driver's pack, and those that
// the driver saves later on its own, are not kept. For a process of its own: it keeps every kernel
// of the process. Throws Error what opening, running and writing throw; the file is what it was
// then.
GRAFT_EXPORT void prepare(const std::string& path, Device& device);

}  // namespace graft::deploy
