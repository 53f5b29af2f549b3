// src/codegen/print/statement_printer.h: prints the statements of a kernel or function.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "codegen/print/dialect.h"

namespace graft::ir {

// One statement per instruction, two spaces of indent each; vector loops over half elements in
// tiles (tile.h) where the dialect has functions for them, those with functions of bounded
// arguments (math.h) in blocks. REQUIRES: the kernel was verified.
std::string print_body(const Kernel& kernel, const Dialect& dialect, int indent);

}  // namespace graft::ir
