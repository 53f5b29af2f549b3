// src/runtime/driver/version.cpp: the version that CMake configured.
#include "runtime/driver/version.h"

namespace graft {

const char* version() noexcept { return GRAFT_VERSION; }

}  // namespace graft
