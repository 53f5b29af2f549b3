// src/kernels/tensor/raw_dtype.h: the integer that moves an element of any dtype unchanged.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/dtype.h"

namespace graft {

// The integer of the element's size; 16-byte elements are two of 8 bytes, see raw_width.
constexpr graft_dtype raw_dtype(graft_dtype dtype) {
  return size_of(dtype) == 16 ? GRAFT_INT64 : raw_dtype_of_size(size_of(dtype));
}

// Raw elements that make one element.
constexpr int64_t raw_width(graft_dtype dtype) { return size_of(dtype) == 16 ? 2 : 1; }

}  // namespace graft
