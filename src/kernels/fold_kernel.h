// src/kernels/fold_kernel.h: the kernel behind a FoldProgram.
#pragma once

#include <string>

#include "codegen/ir.h"
#include "kernels/fold_program.h"

namespace graft {

// Neighbouring kept positions that a work-item of the column form takes.
inline constexpr int64_t kFoldColumns = 64;

// Writes the kernel; the order of its parameters is the order of launch_fold's arguments.
// unit: the inner stride of the inputs is 1 (of the line, or of the columns).
ir::Kernel build_fold(const std::string& name, const FoldProgram& program, FoldForm form,
                      bool unit);

}  // namespace graft
