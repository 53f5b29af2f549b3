// drivers/veda/program/compiler.h: runs the compiler and the linker for Vector Engines.
#ifndef GRAFT_DRIVERS_VEDA_PROGRAM_COMPILER_H_
#define GRAFT_DRIVERS_VEDA_PROGRAM_COMPILER_H_

#include <string>
#include <string_view>

#include "graft/driver.h"

namespace graft::veda {

// Compiles C source, beside the device's side of a launch, to the bytes of a .vso. options: more
// flags, separated by spaces. COMPILE_ERROR: out_log is what compiler or linker wrote; UNSUPPORTED:
// one of them is missing; IO: the temporary files could not be written. Thread-safe.
graft_status compile_program(std::string_view source, std::string_view options,
                             std::string* out_library, std::string* out_log);

// What a program depends on but its source: commands, flags and the compiler's version.
const std::string& toolchain();

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_PROGRAM_COMPILER_H_
