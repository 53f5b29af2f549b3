// drivers/host/compiler.h: runs the system's C compiler.
#ifndef GRAFT_DRIVERS_HOST_COMPILER_H_
#define GRAFT_DRIVERS_HOST_COMPILER_H_

#include <string>
#include <string_view>

#include "graft/driver.h"

namespace graft::host {

// Compiles C source to the bytes of a shared object. options: more flags, separated by spaces.
// COMPILE_ERROR: out_log is what the compiler wrote; UNSUPPORTED: there is no compiler; IO: the
// temporary files could not be written. Thread-safe, also beside other processes.
graft_status compile_c(std::string_view source, std::string_view options, std::string* out_object,
                       std::string* out_log);

// First line of what the compiler says of its version; "" when there is none.
std::string compiler_version();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COMPILER_H_
