// src/codegen/dialects/private_arrays.h: how much memory of its own a work-item takes.
#pragma once

#include <cstdint>

#include "codegen/ir/ir.h"

namespace graft::ir {

// Private arrays of a work-item that may share its group with others: PoCL keeps those of a whole
// group on one thread's stack. Where they are larger every work-item is its own group.
inline constexpr uint64_t kSharedStack = 8192;

// Bytes of the private arrays of a work-item of the CPU-like family; 0 of the other.
inline uint64_t private_bytes(const Kernel& kernel) {
  uint64_t bytes = 0;
  for (const Instruction& it : kernel.body) {
    if (it.opcode == Opcode::kLanes) bytes += it.bits * bytes_of(it.type);
  }
  return kernel.family == Family::kCpuLike ? bytes : 0;
}

}  // namespace graft::ir
