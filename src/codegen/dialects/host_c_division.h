// src/codegen/dialects/host_c_division.h: division by what a loop does not change.
#pragma once

#include <string_view>

namespace graft::ir {

// The reciprocal is computed once, before the loop. It is floor((2^64 - 1) / m) for the divisor's
// magnitude m, short of 2^64 / m by at most 1; dividends are at most 2^63, so the high half of the
// product is the quotient's magnitude or one less. Granlund and Montgomery, Division by Invariant
// Integers using Multiplication, PLDI 1994. Signs are masks: branches on them are foretold wrongly.
inline constexpr std::string_view kInvariantDivision = R"(
static inline __attribute__((always_inline)) i64 graft_quotient_i64(i64 a, i64 b) {
  const u64 down = (u64)(b >> 63), below = (u64)(a >> 63), sign = below ^ down;
  const u64 m = b == 0 ? 1 : ((u64)b ^ down) - down, reciprocal = ~(u64)0 / m;
  const u64 magnitude = ((u64)a ^ below) - below;
  u64 q = (u64)(((unsigned __int128)magnitude * reciprocal) >> 64);
  q += magnitude - q * m >= m;
  return (i64)(b == 0 ? 0 : (q ^ sign) - sign);
}
static inline __attribute__((always_inline)) i64 graft_remainder_i64(i64 a, i64 b) {
  return b == 0 ? 0 : (i64)((u64)a - (u64)graft_quotient_i64(a, b) * (u64)b);
}
)";

}  // namespace graft::ir
