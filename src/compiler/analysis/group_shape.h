// src/compiler/analysis/group_shape.h: which shapes go together in one kernel.
#pragma once

#include <vector>

#include "compiler/graph/size.h"

namespace graft::compiler {

// Whether from may be broadcast to to: dimension by dimension from the last, equal or 1. Symbolic
// sizes that are neither are taken to fit, unless both are constants.
bool broadcasts(const std::vector<Size>& from, const std::vector<Size>& to);

// The same, but certain: every size reads equal or is 1.
bool surely_broadcasts(const std::vector<Size>& from, const std::vector<Size>& to);

}  // namespace graft::compiler
