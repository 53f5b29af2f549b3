// src/kernels/tensor/complex_parts.h: complex numbers as pairs of real ones, for kernels of real
// numbers.
#pragma once

#include "kernels/tensor/view.h"

namespace graft {

// The real (part 0) or imaginary (part 1) parts of a complex view, as a view of the same memory.
inline TensorView complex_part(const TensorView& view, int part) {
  TensorView parts = view;
  parts.dtype = part_of(view.dtype);
  parts.address += static_cast<graft_address>(part) * (view.dtype == GRAFT_COMPLEX64 ? 4 : 8);
  for (int i = 0; i < view.rank; ++i) parts.strides[i] *= 2;
  return parts;
}

}  // namespace graft
