// tests/kernels/tensor/float16.h: IEEE 754 binary16 for tests; not every compiler has the type for
// every processor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace graft::test {

// Returns the bits of the nearest float16, ties to even; from 65520 on infinity.
inline uint16_t float16_bits(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7e00;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent, -13);  // below 2^-14 the steps stay as wide
  const double steps = std::nearbyint(std::ldexp(magnitude, 11 - exponent));
  return static_cast<uint16_t>(sign + ((exponent + 13) << 10) + static_cast<int>(steps));
}

// Returns what the bits of a float16 mean.
inline double float16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude =
      std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = fraction == 0 ? HUGE_VAL : NAN;
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1 : 1);
}

}  // namespace graft::test
