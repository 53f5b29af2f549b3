// src/compiler/kernels/group_description.h: what a group's generated kernel depends on, as text.
#pragma once

#include <string>

#include "compiler/kernels/group_kernel.h"

namespace graft::compiler {

// Everything that the kernel's source depends on, with values named by their position: two groups
// with one text share a kernel.
std::string group_description(const Graph& graph, const GroupKernel& kernel);

// The number that a constant of one element holds.
double constant_number(const GraphValue& constant);

}  // namespace graft::compiler
