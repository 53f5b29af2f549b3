// src/codegen/dialects/host_c_rounding.h: keeps GCC from leaving a rounding out.
#pragma once

#include <string_view>

#include "codegen/ir/ir.h"

namespace graft::ir {

// Whether a float64 is rounded to float32 and widened again.
inline bool rounds_through_f32(const Kernel& kernel) {
  const auto casts = [&](Id id, Type to) {
    return id != kNoId && kernel.body[id].opcode == Opcode::kCast && kernel.body[id].type == to;
  };
  for (const Instruction& wide : kernel.body) {
    if (wide.opcode != Opcode::kCast || wide.type != Type::kF64) continue;
    if (!casts(wide.operands[0], Type::kF32)) continue;
    const Id from = kernel.body[wide.operands[0]].operands[0];
    if (from != kNoId && kernel.body[from].type == Type::kF64) return true;
  }
  return false;
}

// GCC 12 leaves this rounding out where it computes two of them as one vector of straight-line
// code.
inline constexpr std::string_view kKeepsRounding =
    "#pragma GCC optimize(\"no-tree-slp-vectorize\")\n";

}  // namespace graft::ir
