// drivers/host/memory/trap.h: says in one line why host code that touches device memory dies.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_TRAP_H_
#define GRAFT_DRIVERS_HOST_MEMORY_TRAP_H_

#include <cstdint>

namespace graft::host {

// From now on a fault inside [begin, begin + bytes) prints the line; then whatever handled SIGSEGV
// before does so again. Called once.
void install_trap(uint64_t begin, uint64_t bytes);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_TRAP_H_
