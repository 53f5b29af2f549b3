// drivers/host/kernel/compiler.h: runs a C compiler: the system's, or a zig that brings one.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_COMPILER_H_
#define GRAFT_DRIVERS_HOST_KERNEL_COMPILER_H_

#include <string>
#include <string_view>

#include "graft/driver.h"

namespace graft::host {

// Compiles C source to the bytes of a shared object. options: more flags, separated by spaces.
// COMPILE_ERROR: out_log is what the compiler wrote; UNSUPPORTED: there is no compiler, it compiles
// nothing at all or it hung, which is asked once per process; IO: the temporary files could not be
// written. Thread-safe, also beside other processes. Leaves no file, nor does the compiler.
graft_status compile_c(std::string_view source, std::string_view options, std::string* out_object,
                       std::string* out_log);

// The command and the first line of what it says of its version: what compiled code depends on.
std::string compiler_identity();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_COMPILER_H_
