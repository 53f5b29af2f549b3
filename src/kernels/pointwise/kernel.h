// src/kernels/pointwise/kernel.h: the generated kernel of a row of the op table.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/ir/ir.h"
#include "codegen/ops/op_table.h"
#include "graft/driver.h"
#include "kernels/launch/loop_nest.h"

namespace graft {

// What a kernel is specialised on. Zeroed before it is filled in: it is compared as bits.
struct PointwiseSpec {
  static constexpr int kMaxOperands = 8;
  static constexpr int kMaxOuter = 3;

  uint16_t op = 0;       // Op::id
  uint8_t compute = 0;   // graft_dtype; a half type where results are rounded to it
  uint8_t outer = 0;     // loops around the innermost one
  uint8_t operands = 0;  // outputs, then inputs
  WorkMapping deal = WorkMapping::kSpans;
  uint8_t unused[2] = {};
  uint8_t operand[kMaxOperands] = {};  // graft_dtype | AccessPattern << 4 | kShifted

  // Backwards along some loop: the first element is not the lowest.
  static constexpr uint8_t kShifted = 128;

  graft_dtype dtype(int i) const { return static_cast<graft_dtype>(operand[i] & 15); }
  AccessPattern walk(int i) const { return static_cast<AccessPattern>(operand[i] >> 4 & 7); }
  bool shifted(int i) const { return (operand[i] & kShifted) != 0; }
  void set(int i, graft_dtype dtype, AccessPattern walk) {
    operand[i] =
        static_cast<uint8_t>(dtype | static_cast<int>(walk) << 4 | (operand[i] & kShifted));
  }
};
static_assert(sizeof(PointwiseSpec) == 16, "the launcher's cache compares two words");

// The dtype in which scalars reach the kernel: compute, but float32 for the half types.
graft_dtype scalar_dtype(graft_dtype compute);

// The loops of the kernel; a scalar has no part in them.
NestShape nest_shape(const PointwiseSpec& spec);

// Arguments of the launch, in order: every operand, then the row's scalars: an address, or the
// scalar (complex: its two parts); then what append_nest appends.
ir::Kernel pointwise_kernel(const PointwiseSpec& spec);

// The kernel's key, spelled from the spec: "add_float32_3ffff".
std::string pointwise_key(const PointwiseSpec& spec);

}  // namespace graft
