// src/codegen/print/printer.h: prints kernels as programs of a dialect.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "codegen/print/dialect.h"

namespace graft::ir {

// A whole program that holds the kernel and the functions that it calls. The same kernel gives the
// same text. REQUIRES: the kernel was verified, and is CPU-like where the dialect is.
std::string print(const Kernel& kernel, const Dialect& dialect);

// The same for several kernels, which share their functions.
std::string print(const std::vector<Kernel>& kernels, const Dialect& dialect);

// The expression that turns a stored element, itself an expression, into its compute type.
std::string loaded(graft_dtype dtype, const std::string& element);

// The expression that turns a value of the compute type into what is stored.
std::string stored(graft_dtype dtype, const std::string& value);

}  // namespace graft::ir
