// src/kernels/tensor/view.cpp: scalars and their conversions.
#include "kernels/tensor/view.h"

#include <bit>

namespace graft {

TensorView expanded(const TensorView& view, const TensorView& shape) {
  TensorView wide = shape;
  wide.address = view.address, wide.dtype = view.dtype;
  for (int d = 0; d < shape.rank; ++d) {
    const int from = d - shape.rank + view.rank;
    wide.strides[d] = from < 0 || view.sizes[from] == 1 ? 0 : view.strides[from];
  }
  return wide;
}

namespace {

uint16_t bfloat16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t float16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff, sign = (bits >> 16) & 0x8000;
  uint32_t result;
  if (magnitude >= 0x47800000) {
    result = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  } else if (magnitude < 0x38800000) {
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  } else {
    result = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  }
  return static_cast<uint16_t>(result | sign);
}

float from_float16(uint16_t stored) {
  const uint32_t magnitude = (stored & 0x7fffu) << 13, sign = (stored & 0x8000u) << 16;
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if ((stored & 0x7fff) >= 0x7c00) bits = magnitude | 0x7f800000;
  return std::bit_cast<float>(bits | sign);
}

template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// As C converts, but without undefined results: what does not fit wraps or is the lowest number.
int64_t to_integer(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<int64_t>(value);
  if (value >= 0x1p63 && value < 0x1p64) return static_cast<int64_t>(static_cast<uint64_t>(value));
  return INT64_MIN;
}

uint64_t truncated(graft_dtype dtype, int64_t value) {
  const uint32_t bytes = size_of(dtype);
  const uint64_t bits = static_cast<uint64_t>(value);
  return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

uint64_t float_bits(graft_dtype dtype, double value) {
  switch (dtype) {
    case GRAFT_FLOAT16:
      return float16_bits(static_cast<float>(value));
    case GRAFT_BFLOAT16:
      return bfloat16_bits(static_cast<float>(value));
    case GRAFT_FLOAT64:
    case GRAFT_COMPLEX128:
      return bits_of(value);
    default:
      return bits_of(static_cast<float>(value));
  }
}

double part(graft_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case GRAFT_FLOAT16:
      return from_float16(static_cast<uint16_t>(bits));
    case GRAFT_BFLOAT16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    case GRAFT_FLOAT32:
    case GRAFT_COMPLEX64:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

int64_t integer(graft_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case GRAFT_INT8:
      return static_cast<int8_t>(bits);
    case GRAFT_INT16:
      return static_cast<int16_t>(bits);
    case GRAFT_INT32:
      return static_cast<int32_t>(bits);
    case GRAFT_INT64:
      return static_cast<int64_t>(bits);
    default:
      return static_cast<uint8_t>(bits);
  }
}

}  // namespace

Scalar Scalar::of(graft_dtype dtype, double value) {
  Scalar scalar;
  scalar.dtype = dtype;
  if (dtype == GRAFT_BOOL) {
    scalar.bits[0] = value != 0;
  } else if (is_integral(dtype)) {
    scalar.bits[0] = truncated(dtype, to_integer(value));
  } else {
    scalar.bits[0] = float_bits(dtype, value);
  }
  return scalar;
}

Scalar Scalar::of_integer(graft_dtype dtype, int64_t value) {
  if (!is_integral(dtype, true)) return of(dtype, static_cast<double>(value));
  Scalar scalar;
  scalar.dtype = dtype;
  scalar.bits[0] = dtype == GRAFT_BOOL ? value != 0 : truncated(dtype, value);
  return scalar;
}

Scalar Scalar::to(graft_dtype to) const {
  if (to == dtype) return *this;
  if (is_integral(dtype, true)) return of_integer(to, integer(dtype, bits[0]));
  Scalar result = of(to, part(dtype, bits[0]));
  if (is_complex(dtype) && is_complex(to)) result.bits[1] = float_bits(to, part(dtype, bits[1]));
  if (is_complex(dtype) && to == GRAFT_BOOL && part(dtype, bits[1]) != 0) result.bits[0] = 1;
  return result;
}

double Scalar::real() const {
  return is_integral(dtype, true) ? static_cast<double>(integer(dtype, bits[0]))
                                  : part(dtype, bits[0]);
}

}  // namespace graft
