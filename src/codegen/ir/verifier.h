// src/codegen/ir/verifier.h: checks that a kernel is legal before it is printed.
#pragma once

#include "codegen/ir/ir.h"

namespace graft::ir {

// Throws std::logic_error that names the kernel, the instruction and the broken rule. A kernel that
// passes prints to a program that every dialect of its family compiles. Rules, all from one table:
//  - operands come before their use, have the types that the opcode takes, and are still in scope
//  - loops, ifs and ends nest; a vector loop has step 1 and holds no loop and no if
//  - loads and stores match their parameter's access
//  - barriers and local memory appear in the GPU-like family only
//  - a function has only scalars and ends in its one return
void verify(const Kernel& kernel);

}  // namespace graft::ir
