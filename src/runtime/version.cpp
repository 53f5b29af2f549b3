// src/runtime/version.cpp: the version that CMake configured.
#include "runtime/version.h"

namespace graft {

const char* version() noexcept { return GRAFT_VERSION; }

}  // namespace graft
