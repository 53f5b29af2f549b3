// src/kernels/reduce/fold_kernel.h: the kernel behind a FoldProgram.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "kernels/launch/lanes.h"
#include "kernels/reduce/fold_program.h"

namespace graft {

// Neighbouring kept positions that a work-item of the column form takes.
inline constexpr int64_t kFoldColumns = 64;

// Writes the kernel; the order of its parameters is the order of launch_fold's arguments.
// unit: the inner stride of the inputs is 1 (of the line, or of the columns). Dealt out to lanes, a
// group of kLanes work-items folds a line, at last its own values (group_fold.h), or a work-item
// folds one column.
ir::Kernel build_fold(const std::string& name, const FoldProgram& program, FoldForm form, bool unit,
                      WorkMapping deal);

}  // namespace graft
