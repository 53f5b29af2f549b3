// src/runtime/driver/version.h: the version of the core library.
#pragma once

#include "runtime/driver/export.h"

namespace graft {

// Returns "major.minor.patch" as the build was configured. Static storage, never null, any thread.
GRAFT_EXPORT const char* version() noexcept;

}  // namespace graft
