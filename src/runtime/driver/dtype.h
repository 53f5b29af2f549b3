// src/runtime/driver/dtype.h: what the core knows about element types.
#pragma once

#include <complex>
#include <cstdint>

#include "graft/driver.h"

namespace graft {

// Bytes of one element; 0 for a number that graft/driver.h does not know.
constexpr uint32_t size_of(graft_dtype dtype) noexcept {
  switch (dtype) {
#define GRAFT_CASE(name, value, bytes, text) \
  case GRAFT_##name:                         \
    return bytes;
    GRAFT_DTYPES(GRAFT_CASE)
#undef GRAFT_CASE
  }
  return 0;
}

// The name in messages and kernel keys ("float32"). Static storage.
constexpr const char* name_of(graft_dtype dtype) noexcept {
  switch (dtype) {
#define GRAFT_CASE(name, value, bytes, text) \
  case GRAFT_##name:                         \
    return text;
    GRAFT_DTYPES(GRAFT_CASE)
#undef GRAFT_CASE
  }
  return "unknown";
}

// float16, bfloat16, float32 and float64.
constexpr bool is_floating(graft_dtype dtype) noexcept {
  return dtype >= GRAFT_FLOAT16 && dtype <= GRAFT_FLOAT64;
}

// float16 and bfloat16: 16 bits, computed with in float32.
constexpr bool is_half(graft_dtype dtype) noexcept {
  return dtype == GRAFT_FLOAT16 || dtype == GRAFT_BFLOAT16;
}

// complex64 and complex128.
constexpr bool is_complex(graft_dtype dtype) noexcept {
  return dtype == GRAFT_COMPLEX64 || dtype == GRAFT_COMPLEX128;
}

// The integers. bool is integral only when include_bool is set, as in torch.
constexpr bool is_integral(graft_dtype dtype, bool include_bool = false) noexcept {
  return (dtype >= GRAFT_UINT8 && dtype <= GRAFT_INT64) || (include_bool && dtype == GRAFT_BOOL);
}

// Integers with a sign, and every floating and complex type.
constexpr bool is_signed(graft_dtype dtype) noexcept {
  return dtype != GRAFT_BOOL && dtype != GRAFT_UINT8;
}

// The type that one part of a complex number has; any other type is its own part.
constexpr graft_dtype part_of(graft_dtype dtype) noexcept {
  if (dtype == GRAFT_COMPLEX64) return GRAFT_FLOAT32;
  return dtype == GRAFT_COMPLEX128 ? GRAFT_FLOAT64 : dtype;
}

// The dtype that moves elements of so many bytes as they are: an integer, of 16 bytes complex128.
// REQUIRES: 1, 2, 4, 8 or 16.
constexpr graft_dtype raw_dtype_of_size(uint64_t bytes) noexcept {
  switch (bytes) {
    case 1:
      return GRAFT_UINT8;
    case 2:
      return GRAFT_INT16;
    case 4:
      return GRAFT_INT32;
    case 8:
      return GRAFT_INT64;
    default:
      return GRAFT_COMPLEX128;
  }
}

// dtype_of<T>: the element type of a C++ type. float16 and bfloat16 have no C++ type in the core.
template <class T>
inline constexpr graft_dtype dtype_of = T::the_core_has_no_dtype_for_this_type;
template <>
inline constexpr graft_dtype dtype_of<bool> = GRAFT_BOOL;
template <>
inline constexpr graft_dtype dtype_of<uint8_t> = GRAFT_UINT8;
template <>
inline constexpr graft_dtype dtype_of<int8_t> = GRAFT_INT8;
template <>
inline constexpr graft_dtype dtype_of<int16_t> = GRAFT_INT16;
template <>
inline constexpr graft_dtype dtype_of<int32_t> = GRAFT_INT32;
template <>
inline constexpr graft_dtype dtype_of<int64_t> = GRAFT_INT64;
template <>
inline constexpr graft_dtype dtype_of<float> = GRAFT_FLOAT32;
template <>
inline constexpr graft_dtype dtype_of<double> = GRAFT_FLOAT64;
template <>
inline constexpr graft_dtype dtype_of<std::complex<float>> = GRAFT_COMPLEX64;
template <>
inline constexpr graft_dtype dtype_of<std::complex<double>> = GRAFT_COMPLEX128;

}  // namespace graft
