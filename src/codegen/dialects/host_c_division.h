// src/codegen/dialects/host_c_division.h: division by what a loop does not change.
#pragma once

#include <string_view>

namespace graft::ir {

// The reciprocal is computed once, before the loop. It is floor((2^64 - 1) / m) for the divisor's
// magnitude m, short of 2^64 / m by at most 1; dividends are at most 2^63, so the high half of the
// product is the quotient's magnitude or one less. Granlund and Montgomery, Division by Invariant
// Integers using Multiplication, PLDI 1994. Signs are masks: branches on them are foretold wrongly.
// graft_high is the high half of a product: NEC's Vector Engine has no instruction for it, and a
// kernel there has no function of a compiler's library to do it by.
inline constexpr std::string_view kInvariantDivision = R"(
static inline __attribute__((always_inline)) u64 graft_high(u64 a, u64 b) {
#ifdef __ve__
  const u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32), crossed = a0 * b1 + (u32)middle;
  return a1 * b1 + (middle >> 32) + (crossed >> 32);
#else
  return (u64)(((unsigned __int128)a * b) >> 64);
#endif
}
static inline __attribute__((always_inline)) i64 graft_quotient_i64(i64 a, i64 b) {
  const u64 down = (u64)(b >> 63), below = (u64)(a >> 63), sign = below ^ down;
  const u64 m = b == 0 ? 1 : ((u64)b ^ down) - down, reciprocal = ~(u64)0 / m;
  const u64 magnitude = ((u64)a ^ below) - below;
  u64 q = graft_high(magnitude, reciprocal);
  q += magnitude - q * m >= m;
  return (i64)(b == 0 ? 0 : (q ^ sign) - sign);
}
static inline __attribute__((always_inline)) i64 graft_remainder_i64(i64 a, i64 b) {
  return b == 0 ? 0 : (i64)((u64)a - (u64)graft_quotient_i64(a, b) * (u64)b);
}
)";

}  // namespace graft::ir
