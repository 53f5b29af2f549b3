// src/kernels/move/transpose_tile.h: the transposing kernel of GPU-like devices.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

class OpenDevice;

// Side of the square that a group turns in local memory, whose lines are read and written by
// neighbouring work-items. Lines in local memory are one element longer, so that a column, too,
// falls into different banks (Ruetsch and Micikevicius: "Optimizing Matrix Transpose in CUDA",
// NVIDIA, 2009).
inline constexpr int64_t kTurnSide = 32;

// Work-items of a group: whole lines; 0 where the device has too little local memory or too small
// groups, or is not GPU-like.
int64_t turn_group(const OpenDevice& device, graft_dtype dtype);

// Arguments as the kernel of transpose.cpp has them, with blocks of kTurnSide rows; one group of
// that many work-items for each square: row blocks innermost, then column blocks, then matrices.
ir::Kernel turn_kernel(graft_dtype dtype, int64_t group);
std::string turn_key(graft_dtype dtype, int64_t group);

}  // namespace graft
