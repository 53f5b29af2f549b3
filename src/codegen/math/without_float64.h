// src/codegen/math/without_float64.h: kernels for devices that cannot compute in float64.
#pragma once

#include <optional>

#include "codegen/ir/ir.h"

namespace graft::ir {

// Whether a program of the kernel needs float64: in its memory, its scalars, its instructions or
// the functions that it calls.
bool needs_float64(const Kernel& kernel);

// The kernel with float32 in the place of float64, for the same arguments: float64 scalars are
// rounded from their bits, as a cast would, so a kernel that takes its scalars in float64 and does
// nothing more with them gives equal results. Functions whose definition needs float64 become the
// language's own. Nothing where that would be wrong: float64 in memory, its bits, an integer made
// of it, a kernel that keeps_float64, a function that the language lacks. REQUIRES: verified.
std::optional<Kernel> without_float64(const Kernel& kernel);

}  // namespace graft::ir
